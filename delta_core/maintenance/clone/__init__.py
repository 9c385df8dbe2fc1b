"""CLONE: another table with the rows of this one, by naming its files or by copying them."""

from delta_core.maintenance.clone.apply import ClonePlan, apply_clone, plan_clone
from delta_core.maintenance.clone.clone import clone_table
from delta_core.maintenance.clone.result import CloneResult, KeptHistory

__all__ = ["ClonePlan", "CloneResult", "KeptHistory", "apply_clone", "clone_table", "plan_clone"]
