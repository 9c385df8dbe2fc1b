"""The `optimize` part of an open table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from delta_core.boundary import public_class, refuse_pickle
from delta_core.dml.write import TableHandle
from delta_core.execution.executor import Executor
from delta_core.expressions.ast import Expression
from delta_core.maintenance.backfill.apply import (
    FILES_PER_COMMIT,
    BackfillResult,
    enable_row_tracking,
    number_rows,
)
from delta_core.maintenance.clustering import (
    ClusteringPlan,
    ZOrderPlan,
    apply_clustering,
    apply_z_order,
    plan_clustering,
    plan_z_order,
)
from delta_core.maintenance.compaction.apply import apply_compaction
from delta_core.maintenance.compaction.plan import CompactionPlan, plan_compaction
from delta_core.maintenance.purge.apply import apply_purge
from delta_core.maintenance.purge.plan import PurgePlan, plan_purge
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties


@public_class
class TableOptimizer:
    """The `optimize` part of an open table."""

    def __init__(self, table: TableHandle, *, allowed_roots: Sequence[LogStore] = ()) -> None:
        """Prepare; no request.

        Args:
            table: the handle.
            allowed_roots: where absolute paths of the log may lead, as in `Scan`. What a shallow clone shares
                with its source is read there and written into the clone; nothing is deleted there.
        """
        self._table = table
        self._allowed_roots = allowed_roots

    def __reduce__(self) -> NoReturn:
        """Raises ConfigurationError, which says what to pass instead."""
        raise refuse_pickle(
            "The optimize part of a table",
            "Pass the DeltaTable itself.",
        )

    def plan(
        self,
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        min_file_size_bytes: int | None = None,
    ) -> CompactionPlan:
        """What `compact` would do now. Touches no data file."""
        self._table.update_incremental()
        return plan_compaction(
            self._table.snapshot,
            predicate=predicate,
            target_size_bytes=target_size_bytes,
            min_file_size_bytes=min_file_size_bytes,
        )

    def compact(
        self,
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        min_file_size_bytes: int | None = None,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Mapping[str, Any]:
        """Put small files together; readers see the same rows throughout.

        Args:
            predicate: over partition columns; the whole table when None.
            target_size_bytes: size of a new file; the table's target when None.
            min_file_size_bytes: smaller files are rewritten; three quarters of the target when None.
            executor: maps the rewriting; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics named as delta-spark names them.

        Raises:
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten.
        """
        plan = self.plan(
            predicate, target_size_bytes=target_size_bytes, min_file_size_bytes=min_file_size_bytes
        )
        result = apply_compaction(
            self._table.snapshot,
            plan,
            allowed_roots=self._allowed_roots,
            executor=executor,
            properties=commit_properties,
            clock=self._table.snapshot.clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self._table.adopt(result.committed.snapshot)
        return result.metrics

    def plan_purge(
        self, predicate: Expression | str | None = None, *, target_size_bytes: int | None = None
    ) -> PurgePlan:
        """What `purge` would do now. Touches no data file."""
        self._table.update_incremental()
        return plan_purge(self._table.snapshot, predicate=predicate, target_size_bytes=target_size_bytes)

    def purge(
        self,
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Mapping[str, Any]:
        """Write files that have deletion vectors again, without the deleted rows; no row changes.

        Older versions keep the old files until a vacuum. A second call when nothing was deleted since commits
        nothing.

        Args:
            predicate: over partition columns; the whole table when None.
            target_size_bytes: size of a new file; the table's target when None.
            executor: maps the rewriting; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics named as delta-spark names those of REORG ... APPLY (PURGE).

        Raises:
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten, or deleted
                rows of it.
        """
        plan = self.plan_purge(predicate, target_size_bytes=target_size_bytes)
        result = apply_purge(
            self._table.snapshot,
            plan,
            allowed_roots=self._allowed_roots,
            executor=executor,
            properties=commit_properties,
            clock=self._table.snapshot.clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self._table.adopt(result.committed.snapshot)
        return result.metrics

    def enable_row_tracking(
        self,
        *,
        files_per_commit: int = FILES_PER_COMMIT,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> BackfillResult:
        """Give every row of the table an id that it keeps, and turn row tracking on.

        Several commits, none of which changes a row; stopped half way, it goes on when it is called again.

        Args:
            files_per_commit: no commit adds more files again.
            commit_properties: provenance and limits of the commits; its idempotency key goes with the last.

        Raises:
            UnsupportedTableFeatureError: row tracking, or what the table has besides, is not written here.
            ConcurrentModificationError: other writers came in between time and again.
        """
        self._table.update_incremental()
        result = enable_row_tracking(
            self._table.snapshot,
            files_per_commit=files_per_commit,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._table.snapshot.clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self._table.adopt(result.committed.snapshot)
        return result

    def number_rows(self, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES) -> BackfillResult:
        """Give every row of the table an id, without turning row tracking on: see `enable_row_tracking`."""
        self._table.update_incremental()
        return number_rows(
            self._table.snapshot,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._table.snapshot.clock,
        )

    def plan_z_order(
        self,
        columns: Sequence[str],
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        min_new_fraction: float = 0.0,
        full: bool = False,
    ) -> ZOrderPlan:
        """What `z_order` would do now. Touches no data file."""
        self._table.update_incremental()
        return plan_z_order(
            self._table.snapshot,
            columns,
            predicate=predicate,
            target_size_bytes=target_size_bytes,
            min_new_fraction=min_new_fraction,
            full=full,
        )

    def z_order(
        self,
        columns: Sequence[str],
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        min_new_fraction: float = 0.0,
        full: bool = False,
        memory_limit_bytes: int | None = None,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Mapping[str, Any]:
        """Bring rows that are near each other in some columns into the same files; no row changes.

        Queries that filter by any of the columns then skip files. A second call when nothing new came
        commits nothing.

        Args:
            columns: to order by; two to four work best. They must have statistics.
            predicate: over partition columns; the whole table when None.
            target_size_bytes: size of a new file; the table's target when None.
            min_new_fraction: a partition is left alone while a smaller share of its bytes is out of order.
            full: rewrite partitions that are in order too.
            memory_limit_bytes: for rows in memory; what needs more goes over disk. See `apply_z_order`.
            executor: maps the rewriting; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics named as delta-spark names them.

        Raises:
            ConfigurationError, SchemaError: the table cannot be ordered by these columns.
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten.
        """
        plan = self.plan_z_order(
            columns,
            predicate,
            target_size_bytes=target_size_bytes,
            min_new_fraction=min_new_fraction,
            full=full,
        )
        result = apply_z_order(
            self._table.snapshot,
            plan,
            allowed_roots=self._allowed_roots,
            memory_limit_bytes=memory_limit_bytes,
            executor=executor,
            properties=commit_properties,
            clock=self._table.snapshot.clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self._table.adopt(result.committed.snapshot)
        return result.metrics

    def plan_cluster(
        self,
        *,
        target_size_bytes: int | None = None,
        min_new_fraction: float = 0.0,
        full: bool = False,
    ) -> ClusteringPlan:
        """What `cluster` would do now. Touches no data file."""
        self._table.update_incremental()
        return plan_clustering(
            self._table.snapshot,
            target_size_bytes=target_size_bytes,
            min_new_fraction=min_new_fraction,
            full=full,
        )

    def cluster(
        self,
        *,
        target_size_bytes: int | None = None,
        min_new_fraction: float = 0.0,
        full: bool = False,
        memory_limit_bytes: int | None = None,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Mapping[str, Any]:
        """Bring rows that are near each other in the table's clustering columns into the same files.

        No row changes. What was clustered before is left alone or joined with what is new, as delta-spark's
        OPTIMIZE does; a second call when nothing new came commits nothing.

        Args:
            target_size_bytes: size of a new file; the table's target when None.
            min_new_fraction: nothing is done while a smaller share of the table's bytes is not clustered.
            full: cluster again what other engines clustered, or what was clustered by other columns.
            memory_limit_bytes: for rows in memory; what needs more goes over disk. See `apply_z_order`.
            executor: maps the rewriting; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics named as delta-spark names them.

        Raises:
            ConfigurationError: the table has no clustering columns (`alter.cluster_by`).
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten.
        """
        plan = self.plan_cluster(
            target_size_bytes=target_size_bytes, min_new_fraction=min_new_fraction, full=full
        )
        result = apply_clustering(
            self._table.snapshot,
            plan,
            allowed_roots=self._allowed_roots,
            memory_limit_bytes=memory_limit_bytes,
            executor=executor,
            properties=commit_properties,
            clock=self._table.snapshot.clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self._table.adopt(result.committed.snapshot)
        return result.metrics
