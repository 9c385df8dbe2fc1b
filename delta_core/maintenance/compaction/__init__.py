"""OPTIMIZE: small files of a partition become few large ones; no row changes."""

from delta_core.maintenance.compaction.apply import CompactionResult, apply_compaction
from delta_core.maintenance.compaction.plan import CompactionBin, CompactionPlan, plan_compaction

__all__ = ["CompactionBin", "CompactionPlan", "CompactionResult", "apply_compaction", "plan_compaction"]
