"""FSCK REPAIR TABLE: live files whose data the store no longer has are taken out of the table."""

from delta_core.maintenance.fsck.apply import FsckResult, apply_fsck
from delta_core.maintenance.fsck.plan import FsckPlan, plan_fsck

__all__ = ["FsckPlan", "FsckResult", "apply_fsck", "plan_fsck"]
