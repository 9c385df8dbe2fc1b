"""CLONE: a second table with the same rows, which refers to the source's files or has copies of them."""

from delta_core.maintenance.clone.apply import ClonePlan, apply_clone, plan_clone
from delta_core.maintenance.clone.clone import clone_table
from delta_core.maintenance.clone.result import CloneResult, KeptHistory

__all__ = ["ClonePlan", "CloneResult", "KeptHistory", "apply_clone", "clone_table", "plan_clone"]
