"""The `optimize` part of an open table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_core.dml.write import TableHandle
from delta_core.execution.executor import Executor
from delta_core.expressions.ast import Expression
from delta_core.maintenance.compaction.apply import apply_compaction
from delta_core.maintenance.compaction.plan import CompactionPlan, plan_compaction
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties


class TableOptimizer:
    """The `optimize` part of an open table."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

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
        result = apply_compaction(self._table.snapshot, plan, executor=executor, properties=commit_properties)
        if result.committed is not None and result.committed.snapshot is not None:
            self._table.adopt(result.committed.snapshot)
        return result.metrics
