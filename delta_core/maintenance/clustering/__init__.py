"""OPTIMIZE that sorts rows, by Z-order columns or by the table's clustering columns; no row changes."""

from delta_core.maintenance.clustering.cluster_plan import ClusteringPlan, plan_clustering, unclustered_files
from delta_core.maintenance.clustering.groups import ClusteringGroup, OrderingPlan
from delta_core.maintenance.clustering.plan import ZOrderPlan, plan_z_order

__all__ = [
    "ClusteringGroup",
    "ClusteringPlan",
    "OrderingPlan",
    "ZOrderPlan",
    "plan_clustering",
    "plan_z_order",
    "unclustered_files",
]
