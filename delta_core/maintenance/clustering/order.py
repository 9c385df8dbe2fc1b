"""The order in which the rows of a plan are sorted, and how the log records it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delta_core.errors import MaintenanceError
from delta_core.maintenance.clustering.cluster_plan import ClusteringPlan, column_names, require_clustering
from delta_core.maintenance.clustering.columns import (
    CLUSTERING_PROVIDER,
    clustering_columns,
    refuse_clustered,
)
from delta_core.maintenance.clustering.curve import Shape
from delta_core.maintenance.clustering.plan import ZOrderPlan
from delta_core.maintenance.clustering.values import Path
from delta_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The order of the rows, and how the log records the order.

    Attributes:
        paths: paths of the columns, as physical names.
        shape: the curve, which the files' tags name.
        provider: `clusteringProvider` of the new files.
        parameters: `operationParameters` of the commit.
        stats_name: delta-spark's name of the metric about cubes.
    """

    paths: Sequence[Path]
    shape: Shape
    provider: str | None
    parameters: Mapping[str, Any]
    stats_name: str


def order_of(latest: Snapshot, plan: ZOrderPlan | ClusteringPlan) -> Order:
    """The order of a plan, after a check that the newest version can still be sorted so.

    A clustering sorts by the table's clustering columns (PROTOCOL.md, "Clustered Table").

    Raises:
        ConfigurationError: the table changed and cannot be sorted by these columns any more, or it has no
            clustering columns any more.
        MaintenanceError: the clustering columns changed since the plan.
    """
    return _z_order(latest, plan) if isinstance(plan, ZOrderPlan) else _clustering(latest, plan)


def _z_order(latest: Snapshot, plan: ZOrderPlan) -> Order:
    refuse_clustered(latest)
    ordered_by = clustering_columns(latest, plan.columns)
    return Order(
        paths=tuple((latest.column_mapping.physical_name(field),) for field in ordered_by),
        shape="zorder",
        provider=None,
        parameters={
            "predicate": [plan.predicate] if plan.predicate else [],
            "zOrderBy": list(plan.columns),
            "clusterBy": [],
            "auto": False,
        },
        stats_name="zOrderStats",
    )


def _clustering(latest: Snapshot, plan: ClusteringPlan) -> Order:
    clustering = require_clustering(latest)
    names = column_names(clustering, latest)
    if names != plan.columns:
        raise MaintenanceError(
            f"The table is clustered by {', '.join(names)}, but the plan is for {', '.join(plan.columns)}.",
            cause="The clustering columns were changed or renamed after the plan was made.",
            fix="Make a new plan.",
        )
    return Order(
        paths=clustering.columns,
        shape="hilbert",
        provider=CLUSTERING_PROVIDER,
        parameters={
            "predicate": [],
            "zOrderBy": [],
            "clusterBy": list(names),
            "auto": False,
            "isFull": plan.full,
        },
        stats_name="clusteringStats",
    )
