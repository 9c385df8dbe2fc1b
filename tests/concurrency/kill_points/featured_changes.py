"""Drops of features, and changes of tables with features, killed as the others are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from delta_core import DeltaTable, write_deltalake
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.feature_drop import drop_feature
from delta_core.run import Run
from delta_core.schema.column_mapping import ColumnMappingMode
from delta_core.schema.types import LONG
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.storage.open import open_store
from delta_core.table_features.identity import identity_columns
from delta_core.table_features.upgrade import supported_features
from tests.concurrency.kill_points.featured import FEATURED, Featured
from tests.concurrency.kill_points.featured_tables import (
    ALL_ROWS,
    DELETED,
    ICEBERG,
    LATER,
    ROWS,
    FeaturedStart,
    Row,
    table_of,
)
from tests.concurrency.kill_points.operation import PROPERTIES, Here

_ALONE = InlineExecutor(1)
_RESTORED = 3
"""The version before the one in which a row was deleted."""


def _drop(
    feature: str,
    start: FeaturedStart,
    *prepares: str,
    rows: tuple[Row, ...],
    truncates: bool = False,
    name: str = "",
) -> Featured:
    """A drop, after the commits that prepare it."""
    return Featured(
        name=name or f"drop {feature}",
        run=lambda run: drop_feature(
            Snapshot.load(open_store(run.uri)),
            feature,
            truncate_history=truncates,
            run=Run(commit=PROPERTIES, executor=_ALONE),
        ),
        start=start,
        commits=(*prepares, "DROP FEATURE"),
        before=rows,
        after=rows,
        shows=lambda snapshot: feature not in supported_features(snapshot.protocol),
        # A run that finds the commit for the store's sake there makes another: times go by the newest file.
        repeats=truncates,
        deletes=truncates,
    )


_OFF, _SUSPENDED = "UNSET TBLPROPERTIES", "SET TBLPROPERTIES"

_DROPS = (
    _drop(
        "deletionVectors",
        FeaturedStart.DELETION_VECTORS,
        _OFF,
        "REORG",
        "Deletion Vector Tombstones",
        rows=ROWS,
    ),
    _drop("rowTracking", FeaturedStart.DELETION_VECTORS, _SUSPENDED, "ROW TRACKING UNBACKFILL", rows=ROWS),
    _drop("changeDataFeed", FeaturedStart.FEED, rows=ALL_ROWS),
    _drop("inCommitTimestamp", FeaturedStart.UNTRACKED, rows=ALL_ROWS),
    _drop("columnMapping", FeaturedStart.MAPPED, "REMOVE COLUMN MAPPING", rows=ALL_ROWS),
    _drop("typeWidening", FeaturedStart.WIDENED, _OFF, "REORG", "CHANGE COLUMNS", rows=ALL_ROWS),
    _drop("v2Checkpoint", FeaturedStart.V2, _OFF, rows=ALL_ROWS),
    _drop("icebergCompatV2", FeaturedStart.ICEBERG, rows=ALL_ROWS),
    _drop(
        "deletionVectors",
        FeaturedStart.DUE,
        "Empty Commit",
        rows=ROWS,
        truncates=True,
        name="drop deletionVectors with its history",
    ),
    _drop("checkpointProtection", FeaturedStart.PROTECTED, "Empty Commit", rows=ROWS, truncates=True),
)


def _alter(
    name: str,
    start: FeaturedStart,
    change: Callable[[Here], object],
    *,
    commits: tuple[str, ...] = ("SET TBLPROPERTIES",),
    shows: Callable[[Snapshot], bool],
) -> Featured:
    return Featured(
        name=name, run=change, start=start, commits=commits, before=ALL_ROWS, after=ALL_ROWS, shows=shows
    )


def _set(properties: Mapping[str, str]) -> Callable[[Here], object]:
    return lambda run: DeltaTable(run.uri).alter.set_properties(properties, commit_properties=PROPERTIES)


def _mark_is_there(snapshot: Snapshot) -> bool:
    return identity_columns(snapshot.schema)[0].high_water_mark == ALL_ROWS[-1][0]


_DEFINITIONS = (
    _alter(
        "map columns later",
        FeaturedStart.UNTRACKED,
        _set({"delta.columnMapping.mode": "name"}),
        shows=lambda snapshot: snapshot.column_mapping.mode is ColumnMappingMode.NAME,
    ),
    _alter(
        "widen a column",
        FeaturedStart.WIDENED,
        lambda run: DeltaTable(run.uri).alter.change_type("m", LONG, commit_properties=PROPERTIES),
        commits=("CHANGE COLUMN",),
        shows=lambda snapshot: {field.name: field.data_type for field in snapshot.schema}["m"] == LONG,
    ),
    _alter(
        "sync identity",
        FeaturedStart.NUMBERED,
        lambda run: DeltaTable(run.uri).alter.sync_identity("id", commit_properties=PROPERTIES),
        commits=("CHANGE COLUMN",),
        shows=_mark_is_there,
    ),
    _alter(
        "fit for Iceberg later",
        FeaturedStart.ICEBERG_LATER,
        _set({ICEBERG: "true"}),
        shows=lambda snapshot: "icebergCompatV2" in supported_features(snapshot.protocol),
    ),
)


def _cluster(run: Here) -> object:
    return DeltaTable(run.uri).optimize.cluster(executor=_ALONE, commit_properties=PROPERTIES)


def _providers(snapshot: Snapshot) -> set[str | None]:
    return set(snapshot.files.to_table(["clustering_provider"])["clustering_provider"].to_pylist())


def _clustered_by(snapshot: Snapshot) -> tuple[tuple[str, ...], ...]:
    found = clustering_of(snapshot)
    return () if found is None else found.columns


_CLUSTERING = (
    _alter(
        "cluster",
        FeaturedStart.CLUSTERED,
        _cluster,
        commits=("OPTIMIZE",),
        shows=lambda snapshot: _providers(snapshot) == {"liquid"},
    ),
    _alter(
        "cluster by another column",
        FeaturedStart.CLUSTERED,
        lambda run: DeltaTable(run.uri).alter.cluster_by(["p"], commit_properties=PROPERTIES),
        commits=("CLUSTER BY",),
        shows=lambda snapshot: _clustered_by(snapshot) == (("p",),),
    ),
)


def _restore(name: str, start: FeaturedStart, **options: object) -> Featured:
    return Featured(
        name=name,
        run=lambda run: DeltaTable(run.uri).restore(_RESTORED, commit_properties=PROPERTIES),
        start=start,
        commits=("RESTORE",),
        before=ROWS,
        after=ALL_ROWS,
        **options,  # type: ignore[arg-type]
    )


_ROWS_OF_FEATURED = (
    _restore(
        "restore of vectors",
        FeaturedStart.DELETION_VECTORS,
        changes=(("insert", ALL_ROWS[DELETED]),),
    ),
    _restore("restore to before a drop", FeaturedStart.PROTECTED),
    Featured(
        name="append for Iceberg",
        run=lambda run: write_deltalake(
            run.uri, table_of(LATER), mode="append", commit_properties=PROPERTIES
        ),
        start=FeaturedStart.ICEBERG,
        commits=("WRITE",),
        before=ALL_ROWS,
        after=(*ALL_ROWS, LATER),
    ),
    Featured(
        name="delete for Iceberg",
        run=lambda run: DeltaTable(run.uri).delete("id IN (2, 12)", commit_properties=PROPERTIES),
        start=FeaturedStart.ICEBERG,
        commits=("DELETE",),
        before=ALL_ROWS,
        after=tuple(row for row in ALL_ROWS if row[0] not in (2, 12)),
    ),
)

CHANGED: dict[str, Featured] = {
    operation.name: operation for operation in (*_DROPS, *_DEFINITIONS, *_CLUSTERING, *_ROWS_OF_FEATURED)
}

EVERY_FEATURED: dict[str, Featured] = {**FEATURED, **CHANGED}
"""All operations on tables with features."""
