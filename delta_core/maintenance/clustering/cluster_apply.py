"""Executes a clustering plan: sorts by the table's clustering columns (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from delta_core.data.compression import Compression
from delta_core.errors import MaintenanceError
from delta_core.maintenance.clustering.cluster_plan import ClusteringPlan, column_names, require_clustering
from delta_core.maintenance.clustering.columns import CLUSTERING_PROVIDER
from delta_core.maintenance.clustering.ordering import Order, OrderingResult, apply_ordering, refresh_for
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot


def apply_clustering(
    snapshot: Snapshot,
    plan: ClusteringPlan,
    *,
    memory_limit_bytes: int | None = None,
    compression: Compression | None = None,
    run: Run = DEFAULT_RUN,
) -> OrderingResult:
    """Rewrite the plan's files along a Hilbert curve and commit, if every file is live in the newest version.

    New files have the `clusteringProvider` `liquid` and the ZCube tags that delta-spark writes, so that
    delta-spark does not cluster them again. Concurrent appends do not conflict. An empty plan commits
    nothing. When the commit fails, the new files are deleted, unless the outcome of the commit is unknown.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_clustering`, also in another process.
        memory_limit_bytes: as in `apply_z_order`, with a cube in the place of a partition.
        compression: the Parquet codec of the new files; the table's codec when None.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        MaintenanceError: the plan is for another table, or the clustering columns changed since the plan.
        ConfigurationError: the table has no clustering columns any more.
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts, such as one that changes the columns.
        UnsupportedTableFeatureError: the table needs a feature that this writer does not support.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    latest = refresh_for(snapshot, plan, doing="cluster the table", memory_limit_bytes=memory_limit_bytes)
    clustering = require_clustering(latest)
    names = column_names(clustering, latest)
    if names != plan.columns:
        raise MaintenanceError(
            f"The table is clustered by {', '.join(names)}, but the plan is for {', '.join(plan.columns)}.",
            cause="The clustering columns were changed or renamed after the plan was made.",
            fix="Make a new plan.",
        )
    return apply_ordering(
        latest,
        plan,
        Order(
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
        ),
        memory_limit_bytes=memory_limit_bytes,
        run=run,
        compression=compression,
    )
