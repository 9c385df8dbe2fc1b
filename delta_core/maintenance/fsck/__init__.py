"""FSCK REPAIR TABLE: remove live files from the table that the store no longer has."""

from delta_core.maintenance.fsck.apply import FsckResult, apply_fsck
from delta_core.maintenance.fsck.plan import FsckPlan, plan_fsck

__all__ = ["FsckPlan", "FsckResult", "apply_fsck", "plan_fsck"]
