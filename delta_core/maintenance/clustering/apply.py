"""Executes a Z-order plan."""

from __future__ import annotations

from delta_core.data.compression import Compression
from delta_core.maintenance.clustering.columns import clustering_columns, refuse_clustered
from delta_core.maintenance.clustering.ordering import Order, OrderingResult, apply_ordering, refresh_for
from delta_core.maintenance.clustering.plan import ZOrderPlan
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot


def apply_z_order(
    snapshot: Snapshot,
    plan: ZOrderPlan,
    *,
    memory_limit_bytes: int | None = None,
    compression: Compression | None = None,
    run: Run = DEFAULT_RUN,
) -> OrderingResult:
    """Rewrite the plan's files in Z-order and commit, if every file is still live in the newest version.

    Concurrent appends do not conflict. An empty plan commits nothing. When the commit fails, the new
    files are deleted, unless the outcome of the commit is unknown.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_z_order`, also in another process.
        memory_limit_bytes: limit for the rows in memory at a time, of this process or, on Spark, of each
            task. A partition that needs more is sorted on disk: below `TMPDIR`, or on Spark below the
            table. Half of the available memory, or 512 MiB on Spark, when None. The compressed columns of
            one row group of the old files need memory in addition.
        compression: the Parquet codec of the new files; the table's codec when None.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        MaintenanceError: the plan is for another table.
        ConfigurationError: the table changed and cannot be sorted by these columns any more.
        ConcurrentDeleteDeleteError: a planned file is no longer live.
        ConcurrentModificationError: another commit conflicts.
        UnsupportedTableFeatureError: the table needs a feature that this writer does not support.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    latest = refresh_for(
        snapshot, plan, doing="put the table into Z-order", memory_limit_bytes=memory_limit_bytes
    )
    refuse_clustered(latest)
    ordered_by = clustering_columns(latest, plan.columns)
    return apply_ordering(
        latest,
        plan,
        Order(
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
        ),
        memory_limit_bytes=memory_limit_bytes,
        run=run,
        compression=compression,
    )
