"""`DeltaTable.optimize`: operations that rewrite files, or assign row ids. No row changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

from delta_core.boundary import public_class, refuse_pickle
from delta_core.execution.executor import Executor
from delta_core.expressions.ast import Expression
from delta_core.maintenance.apply_rewrite import RewritePlan, apply_rewrite
from delta_core.maintenance.backfill.apply import (
    FILES_PER_COMMIT,
    BackfillResult,
    assign_row_ids,
    enable_row_tracking,
)
from delta_core.maintenance.clustering import ClusteringPlan, ZOrderPlan, plan_clustering, plan_z_order
from delta_core.maintenance.compaction.plan import CompactionPlan, plan_compaction
from delta_core.maintenance.purge.plan import PurgePlan, plan_purge
from delta_core.maintenance.rewriting.planned_files import StalePlanError
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties

if TYPE_CHECKING:
    from delta_core.table.delta_table import DeltaTable


@public_class
class TableOptimizer:
    """Compaction, purge, Z-order, clustering and row tracking of an open table; no row changes."""

    def __init__(self, table: DeltaTable) -> None:
        """Create the namespace of a handle. Makes no request."""
        self._table = table

    def __reduce__(self) -> NoReturn:
        """Raises ConfigurationError: the object cannot be pickled."""
        raise refuse_pickle(
            "The object `DeltaTable.optimize`",
            "Pass the DeltaTable itself.",
        )

    def plan(
        self,
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        min_file_size_bytes: int | None = None,
    ) -> CompactionPlan:
        """The plan of `compact` for the newest version. Reads no data file."""
        return plan_compaction(
            self._newest(),
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
        """Rewrite small files as fewer large files. Readers always see the same rows.

        Args:
            predicate: over partition columns; the whole table when None.
            target_size_bytes: size of a new file; the table's target when None.
            min_file_size_bytes: files below this size are rewritten; three quarters of the target when None.
            executor: runs the rewriting tasks; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics named as delta-spark names them.

        Raises:
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten.
        """
        run = self._table.new_run(commit_properties, executor)
        return self._rewrite(
            lambda: self.plan(
                predicate, target_size_bytes=target_size_bytes, min_file_size_bytes=min_file_size_bytes
            ),
            run,
        )

    def plan_purge(
        self, predicate: Expression | str | None = None, *, target_size_bytes: int | None = None
    ) -> PurgePlan:
        """The plan of `purge` for the newest version. Reads no data file."""
        return plan_purge(self._newest(), predicate=predicate, target_size_bytes=target_size_bytes)

    def purge(
        self,
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Mapping[str, Any]:
        """Rewrite files that have deletion vectors without the deleted rows; no row changes.

        Older versions still refer to the old files, until a vacuum deletes them. A second call without new
        deletions commits nothing.

        Args:
            predicate: over partition columns; the whole table when None.
            target_size_bytes: size of a new file; the table's target when None.
            executor: runs the rewriting tasks; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics, with the names of delta-spark's REORG ... APPLY (PURGE).

        Raises:
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten, or deleted
                rows of it.
        """
        run = self._table.new_run(commit_properties, executor)
        return self._rewrite(lambda: self.plan_purge(predicate, target_size_bytes=target_size_bytes), run)

    def enable_row_tracking(
        self,
        *,
        files_per_commit: int = FILES_PER_COMMIT,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> BackfillResult:
        """Assign a stable row id to every row of the table, and enable row tracking.

        Makes several commits, none of which changes a row. After an interruption, the next call continues.

        Args:
            files_per_commit: most files that one commit adds again.
            commit_properties: provenance and limits of the commits. The last commit records the idempotency
                key.

        Raises:
            UnsupportedTableFeatureError: this writer does not support row tracking, or another feature of
                the table.
            ConcurrentModificationError: commits of other writers conflicted repeatedly.
        """
        run = self._table.new_run(commit_properties)
        result = enable_row_tracking(self._newest(), files_per_commit=files_per_commit, run=run)
        self._table.advance_to(result.committed)
        return result

    def assign_row_ids(
        self, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> BackfillResult:
        """Assign a row id to every row, without enabling row tracking; see `enable_row_tracking`."""
        run = self._table.new_run(commit_properties)
        return assign_row_ids(self._newest(), run=run)

    def plan_z_order(
        self,
        columns: Sequence[str],
        predicate: Expression | str | None = None,
        *,
        target_size_bytes: int | None = None,
        min_new_fraction: float = 0.0,
        full: bool = False,
    ) -> ZOrderPlan:
        """The plan of `z_order` for the newest version. Reads no data file."""
        return plan_z_order(
            self._newest(),
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
        """Rewrite files so that rows with similar values of some columns are in the same files.

        No row changes. Queries that filter by any of the columns then skip files. A second call without new
        files commits nothing.

        Args:
            columns: columns to sort by; two to four work best. The columns must have statistics.
            predicate: over partition columns; the whole table when None.
            target_size_bytes: size of a new file; the table's target when None.
            min_new_fraction: a partition is not rewritten while a smaller fraction of its bytes is unsorted.
            full: rewrite sorted partitions too.
            memory_limit_bytes: limit for rows in memory. Larger partitions are sorted on disk. See
                `apply_rewrite`.
            executor: runs the rewriting tasks; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics, with delta-spark's names.

        Raises:
            ConfigurationError, SchemaError: the table cannot be sorted by these columns.
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten.
        """
        run = self._table.new_run(commit_properties, executor)
        return self._rewrite(
            lambda: self.plan_z_order(
                columns,
                predicate,
                target_size_bytes=target_size_bytes,
                min_new_fraction=min_new_fraction,
                full=full,
            ),
            run,
            memory_limit_bytes,
        )

    def plan_cluster(
        self,
        *,
        target_size_bytes: int | None = None,
        min_new_fraction: float = 0.0,
        full: bool = False,
    ) -> ClusteringPlan:
        """The plan of `cluster` for the newest version. Reads no data file."""
        return plan_clustering(
            self._newest(),
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
        """Rewrite files so that rows with similar values of the clustering columns are in the same files.

        No row changes. As in delta-spark's OPTIMIZE, full cubes of clustered files are not rewritten, and
        smaller cubes are merged with new files. A second call without new files commits nothing.

        Args:
            target_size_bytes: size of a new file; the table's target when None.
            min_new_fraction: nothing is rewritten while a smaller fraction of the table's bytes is
                unclustered.
            full: also rewrite files that other engines clustered, or that were clustered by other columns.
            memory_limit_bytes: limit for rows in memory. Larger cubes are sorted on disk. See
                `apply_rewrite`.
            executor: runs the rewriting tasks; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            Metrics, with delta-spark's names.

        Raises:
            ConfigurationError: the table has no clustering columns (`alter.cluster_by`).
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten.
        """
        run = self._table.new_run(commit_properties, executor)
        return self._rewrite(
            lambda: self.plan_cluster(
                target_size_bytes=target_size_bytes, min_new_fraction=min_new_fraction, full=full
            ),
            run,
            memory_limit_bytes,
        )

    def _newest(self) -> Snapshot:
        self._table.adopt_newest()
        return self._table.snapshot

    def _rewrite(
        self, plan: Callable[[], RewritePlan], run: Run, memory_limit_bytes: int | None = None
    ) -> Mapping[str, Any]:
        for attempt in count(1):
            planned = plan()
            try:
                result = apply_rewrite(
                    self._table.snapshot, planned, memory_limit_bytes=memory_limit_bytes, run=run
                )
            except StalePlanError:
                # A commit between plan and start emptied a file. Nothing was written yet.
                if attempt >= run.commit.max_attempts:
                    raise
                continue
            self._table.advance_to(result.committed)
            return result.metrics
        raise AssertionError("unreachable: the attempts do not end")
