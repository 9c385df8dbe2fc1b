"""Executes a compaction plan: rewrites the files, then makes one commit that changes no data."""

from __future__ import annotations

from delta_core.data.compression import Compression
from delta_core.maintenance.compaction.bins import (
    BinResult,
    Operation,
    metrics_for,
    refresh_for,
    rewrite_bins,
)
from delta_core.maintenance.compaction.plan import CompactionPlan
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot


def apply_compaction(
    snapshot: Snapshot,
    plan: CompactionPlan,
    *,
    compression: Compression | None = None,
    run: Run = DEFAULT_RUN,
) -> BinResult:
    """Rewrite the plan's files and commit, if every file is still live in the newest version.

    Concurrent appends do not conflict. An empty plan commits nothing. When the commit fails, the new
    files are deleted, unless the outcome of the commit is unknown.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_compaction`, also in another process.
        compression: the Parquet codec of the new files; the table's codec when None.
        run: the surroundings, such as the clock and the commit properties.

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
        run=run,
        compression=compression,
    )
    return BinResult(
        committed=rewritten.committed, metrics=metrics_for(plan, rewritten.adds), rows=rewritten.rows
    )
