"""OPTIMIZE: rewrites the small files of a partition as fewer large files; no row changes."""

from delta_core.maintenance.compaction.apply import apply_compaction
from delta_core.maintenance.compaction.bin_plan import CompactionBin
from delta_core.maintenance.compaction.bins import BinResult
from delta_core.maintenance.compaction.plan import CompactionPlan, plan_compaction

__all__ = ["BinResult", "CompactionBin", "CompactionPlan", "apply_compaction", "plan_compaction"]
