"""Executes a compaction plan: rewrites the files, then makes one commit that changes no data."""

from __future__ import annotations

from collections.abc import Sequence

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.compression import Compression
from delta_core.execution.executor import Executor
from delta_core.execution.reporter import SILENT, ProgressReporter
from delta_core.maintenance.compaction.bins import (
    BinResult,
    Operation,
    metrics_for,
    refresh_for,
    rewrite_bins,
)
from delta_core.maintenance.compaction.plan import CompactionPlan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver


def apply_compaction(
    snapshot: Snapshot,
    plan: CompactionPlan,
    *,
    allowed_roots: Sequence[LogStore] = (),
    executor: Executor | None = None,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    progress: ProgressReporter = SILENT,
    compression: Compression | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> BinResult:
    """Rewrite the plan's files and commit, if every file is still live in the newest version.

    Concurrent appends do not conflict. An empty plan commits nothing. When the commit fails, the new
    files are deleted, unless the outcome of the commit is unknown.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_compaction`, also in another process.
        allowed_roots: directories outside the table that absolute paths in the log may point to, for a
            shallow clone; see `Scan`. Nothing is written or deleted there.
        executor: runs the tasks, one for each bin; threads of this process when None.
        properties: provenance, idempotency key and limits of the commit.
        progress: receives `data.writing` for each bin and the commit's events.
        compression: the Parquet codec of the new files; the table's codec when None.

    Raises:
        MaintenanceError: the plan is for another table.
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts.
        UnsupportedTableFeatureError: the table needs a feature that this writer does not support.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    latest = refresh_for(snapshot, plan, operation="compact the table")
    if plan.is_empty:
        return BinResult(committed=None, metrics=metrics_for(plan, []))
    rewritten = rewrite_bins(
        latest,
        plan.bins,
        planned_version=plan.version,
        operation=Operation(
            name="OPTIMIZE",
            parameters={
                "predicate": [plan.predicate] if plan.predicate else [],
                "zOrderBy": [],
                "clusterBy": [],
                "auto": False,
            },
        ),
        access=DataAccess(allowed_roots=tuple(allowed_roots), clock=clock),
        executor=executor,
        properties=properties,
        progress=progress,
        compression=compression,
        observer=observer,
        clock=clock,
    )
    return BinResult(
        committed=rewritten.committed, metrics=metrics_for(plan, rewritten.adds), rows=rewritten.rows
    )
