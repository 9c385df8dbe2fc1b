"""OPTIMIZE: rewrites the small files of a partition as fewer large files; no row changes."""

from delta_core.maintenance.compaction.bin_plan import CompactionBin
from delta_core.maintenance.compaction.plan import CompactionPlan, plan_compaction

__all__ = ["CompactionBin", "CompactionPlan", "plan_compaction"]
