"""REORG ... APPLY (PURGE): rewrites files with deletion vectors without the deleted rows."""

from delta_core.maintenance.purge.plan import PurgePlan, plan_purge

__all__ = ["PurgePlan", "plan_purge"]
