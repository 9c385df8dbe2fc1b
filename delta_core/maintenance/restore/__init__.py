"""RESTORE: bring the table back to the state of an earlier version, as a new version."""

from delta_core.maintenance.restore.apply import RestoreResult, apply_restore
from delta_core.maintenance.restore.compare_rows import diff_rows
from delta_core.maintenance.restore.files import RestoredFile
from delta_core.maintenance.restore.plan import LostCommit, RestorePlan, plan_restore
from delta_core.maintenance.restore.row_diff import RowDiff

__all__ = [
    "LostCommit",
    "RestorePlan",
    "RestoreResult",
    "RestoredFile",
    "RowDiff",
    "apply_restore",
    "diff_rows",
    "plan_restore",
]
