"""OPTIMIZE that sorts rows, by Z-order columns or by the table's clustering columns; no row changes."""

from delta_core.maintenance.clustering.apply import apply_z_order
from delta_core.maintenance.clustering.cluster_apply import apply_clustering
from delta_core.maintenance.clustering.cluster_plan import ClusteringPlan, plan_clustering, unclustered_files
from delta_core.maintenance.clustering.groups import ClusteringGroup, OrderingPlan
from delta_core.maintenance.clustering.ordering import OrderingResult
from delta_core.maintenance.clustering.plan import ZOrderPlan, plan_z_order

__all__ = [
    "ClusteringGroup",
    "ClusteringPlan",
    "OrderingPlan",
    "OrderingResult",
    "ZOrderPlan",
    "apply_clustering",
    "apply_z_order",
    "plan_clustering",
    "plan_z_order",
    "unclustered_files",
]
