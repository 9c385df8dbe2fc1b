"""VACUUM: deletes files that no version within the retention needs. A dry run by default."""

from delta_core.maintenance.vacuum.apply import VacuumResult, apply_vacuum
from delta_core.maintenance.vacuum.plan import VacuumFile, VacuumPlan, plan_vacuum

__all__ = ["VacuumFile", "VacuumPlan", "VacuumResult", "apply_vacuum", "plan_vacuum"]
