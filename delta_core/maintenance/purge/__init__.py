"""REORG ... APPLY (PURGE): rewrites files with deletion vectors without the deleted rows."""

from delta_core.maintenance.purge.apply import apply_purge
from delta_core.maintenance.purge.plan import PurgePlan, plan_purge

__all__ = ["PurgePlan", "apply_purge", "plan_purge"]
