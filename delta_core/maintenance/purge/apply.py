"""Executes a purge plan: rewrites the files, then makes one commit that changes no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_core.actions import AddFile
from delta_core.data.compression import Compression
from delta_core.maintenance.compaction.bins import (
    BinResult,
    Operation,
    metrics_for,
    refresh_for,
    rewrite_bins,
)
from delta_core.maintenance.purge.plan import PurgePlan
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot


def apply_purge(
    snapshot: Snapshot, plan: PurgePlan, *, compression: Compression | None = None, run: Run = DEFAULT_RUN
) -> BinResult:
    """Rewrite the plan's files without their deleted rows and commit, if every file is still live.

    Concurrent appends do not conflict. A concurrent deletion of rows in one of the files conflicts. An empty
    plan commits nothing. When the commit fails, the new files are deleted, unless the outcome of the commit
    is unknown.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_purge`, also in another process.
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
    latest = refresh_for(snapshot, plan, operation="purge the table")
    if plan.is_empty:
        return BinResult(committed=None, metrics=_purge_metrics(plan, [], deletion_vectors=0, deleted_rows=0))
    rewritten = rewrite_bins(
        latest,
        plan.bins,
        planned_version=plan.version,
        operation=Operation(
            name="REORG",
            parameters={"predicate": [plan.predicate] if plan.predicate else [], "applyPurge": True},
        ),
        run=run,
        compression=compression,
    )
    return BinResult(
        committed=rewritten.committed,
        metrics=_purge_metrics(
            plan,
            rewritten.adds,
            deletion_vectors=rewritten.deletion_vectors,
            deleted_rows=rewritten.deleted_rows,
        ),
        rows=rewritten.rows,
    )


def _purge_metrics(
    plan: PurgePlan, adds: Sequence[AddFile], *, deletion_vectors: int, deleted_rows: int
) -> dict[str, Any]:
    return {
        **metrics_for(plan, adds),
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": deletion_vectors,
            "numDeletionVectorRowsRemoved": deleted_rows,
        },
    }
