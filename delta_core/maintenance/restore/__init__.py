"""RESTORE: make the table again what it was at an earlier version, as a new version."""

from delta_core.maintenance.restore.apply import RestoreResult, apply_restore
from delta_core.maintenance.restore.plan import LostCommit, RestoredFile, RestorePlan, plan_restore

__all__ = ["LostCommit", "RestorePlan", "RestoreResult", "RestoredFile", "apply_restore", "plan_restore"]
