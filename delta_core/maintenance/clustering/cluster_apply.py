"""Clustering a table by its own columns (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from collections.abc import Sequence

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.compression import Compression
from delta_core.errors import MaintenanceError
from delta_core.execution.executor import Executor
from delta_core.execution.reporter import SILENT, ProgressReporter
from delta_core.maintenance.clustering.cluster_plan import ClusteringPlan, column_names, require_clustering
from delta_core.maintenance.clustering.columns import CLUSTERING_PROVIDER
from delta_core.maintenance.clustering.ordering import Order, OrderingResult, apply_ordering, refresh_for
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver


def apply_clustering(
    snapshot: Snapshot,
    plan: ClusteringPlan,
    *,
    memory_limit_bytes: int | None = None,
    allowed_roots: Sequence[LogStore] = (),
    executor: Executor | None = None,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    progress: ProgressReporter = SILENT,
    compression: Compression | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> OrderingResult:
    """Rewrite the plan's files along Hilbert's curve and commit, if every one is still in the newest version.

    New files name `liquid` as their `clusteringProvider` and carry the tags of a cube, as delta-spark writes
    them, so that it clusters them no second time. Concurrent appends do not disturb it. An empty plan commits
    nothing. When the commit does not happen, the new files are deleted unless it cannot be told whether it
    happened.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_clustering`, perhaps in another process.
        memory_limit_bytes: see `apply_z_order`; what it says of a partition holds for a cube.
        allowed_roots: where absolute paths of the log may lead, for a shallow clone; see `Scan`. Nothing is
            written or deleted there.
        executor: maps the rewriting; threads of this process when None.
        properties: provenance, idempotency key and limits of the commit.
        progress: receives `data.writing` for the new files and the commit's events.
        compression: the Parquet codec of the new files; the table's when None.

    Raises:
        MaintenanceError: the plan is for another table, or the table is clustered by other columns by now.
        ConfigurationError: by now the table has no clustering columns.
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts, such as one that changes the columns.
        UnsupportedTableFeatureError: the table needs something that this writer does not do.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below a root that is allowed.
    """
    latest = refresh_for(snapshot, plan, doing="cluster the table", memory_limit_bytes=memory_limit_bytes)
    clustering = require_clustering(latest)
    names = column_names(clustering, latest)
    if names != plan.columns:
        raise MaintenanceError(
            f"The table is clustered by {', '.join(names)}, the plan is for {', '.join(plan.columns)}",
            cause="The clustering columns were changed, or renamed, since the plan was made",
            fix="plan again",
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
        access=DataAccess(allowed_roots=tuple(allowed_roots), clock=clock),
        executor=executor,
        properties=properties,
        progress=progress,
        compression=compression,
        observer=observer,
        clock=clock,
    )
