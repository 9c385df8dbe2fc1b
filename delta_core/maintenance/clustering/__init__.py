"""OPTIMIZE ZORDER BY: rows near each other in several columns come into the same files; no row changes."""

from delta_core.maintenance.clustering.apply import ZOrderResult, apply_z_order
from delta_core.maintenance.clustering.plan import ClusteringGroup, ZOrderPlan, plan_z_order

__all__ = ["ClusteringGroup", "ZOrderPlan", "ZOrderResult", "apply_z_order", "plan_z_order"]
