"""Tables with deletion vectors, row ids, commit times and change data that operations start from, as folders.

Each holds the ids 0 to 9 and 10 to 19 in partition a and 20 to 29 in partition b, a file for each ten; where
there are vectors, row 15 went by one in the last version.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import FeatureRemovalError
from delta_core.schema.types import LONG, STRING, StructField, StructType
from delta_core.table_features.identity import define_identity
from tests.concurrency.kill_points.places import SOURCE, TABLE, Place, table_root
from tests.concurrency.kill_points.tables import write_entries
from tests.concurrency.matrix.dropping import age

Row = tuple[int, str, str]

TIMES = {"delta.enableInCommitTimestamps": "true"}
TRACKED = {**TIMES, "delta.enableRowTracking": "true"}
REWRITTEN = {**TRACKED, "delta.enableChangeDataFeed": "true"}
BY_DELETION_VECTORS = {**REWRITTEN, "delta.enableDeletionVectors": "true"}

FEED = "delta.enableChangeDataFeed"
WIDENING = "delta.enableTypeWidening"
ICEBERG = "delta.enableIcebergCompatV2"
MATERIALISED = "delta.enableMaterializePartitionColumnsFeature"
MAPPED = {**TIMES, "delta.columnMapping.mode": "name"}
DELETION_VECTORS = "deletionVectors"

DELETED = 15

ALL_ROWS: tuple[Row, ...] = tuple((n, "a" if n < 20 else "b", f"v{n}") for n in range(30))
ROWS: tuple[Row, ...] = tuple(row for row in ALL_ROWS if row[0] != DELETED)
LATER: Row = (40, "b", "later")
"""What the source of a clone has besides, once the clone was made the first time."""


class FeaturedStart(StrEnum):
    """The table that an operation starts from."""

    DELETION_VECTORS = "a table with deletion vectors and change data"
    REWRITTEN = "a table with change data that is rewritten"
    UNTRACKED = "a table without row ids"
    SOURCE = "another table"
    CLONE = "a clone of what its source was"
    FILES = "a folder of files"
    FEED = "a table with change data alone"
    MAPPED = "a table with names of its own in files"
    WIDENED = "a table with a column that was narrower"
    V2 = "a table with a V2 checkpoint"
    DUE = "a table whose history is old enough to go"
    PROTECTED = "a table with a protected log"
    NUMBERED = "a table with an identity column that rows bring along"
    ICEBERG = "a table for Iceberg"
    ICEBERG_LATER = "a table whose files fit Iceberg"
    CLUSTERED = "a table with clustering columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeStart:
    """A start: the folder to copy, and the newest version of its table; -1 where there is none."""

    folder: Path
    version: int


def table_of(*rows: Row) -> pa.Table:
    """Rows as they are written."""
    ids, partitions, values = ([row[i] for row in rows] for i in range(3))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array(partitions, pa.string()),
            "v": pa.array(values, pa.string()),
        }
    )


def make_start(start: FeaturedStart, place: Place, folder: Path) -> MadeStart:
    """Make it in a new folder; written to a directory in every place, where objects are the same."""
    root = table_root(folder, TABLE)
    root.parent.mkdir(parents=True)
    _MAKERS[start](folder)
    log = root / "_delta_log"
    version = len(list(log.glob("*.json"))) - 1
    if place is Place.DYNAMODB and version >= 0:
        write_entries(folder, version)
    return MadeStart(folder=folder, version=version)


def _filled(root: Path, properties: dict[str, str]) -> DeltaTable:
    table = DeltaTable.create(root, table_of().schema, partition_by=["p"], configuration=properties)
    for first in (0, 10, 20):
        write_deltalake(table, table_of(*ALL_ROWS[first : first + 10]), mode="append")
    if properties == BY_DELETION_VECTORS:
        table.delete(f"id = {DELETED}")
    return table


def _source(folder: Path) -> None:
    _filled(table_root(folder, SOURCE), BY_DELETION_VECTORS)


def _clone(folder: Path) -> None:
    _source(folder)
    source = table_root(folder, SOURCE)
    clone_table(source, table_root(folder))
    write_deltalake(source, table_of(LATER), mode="append")
    DeltaTable(source).delete("id IN (3, 4)")


def _files(folder: Path) -> None:
    """A folder as another program leaves it: partition values in the directories' names alone."""
    for first, partition in ((0, "a"), (10, "a"), (20, "b")):
        path = table_root(folder) / f"p={partition}" / f"{first}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table_of(*ALL_ROWS[first : first + 10]).drop_columns("p"), path)


def _widened(folder: Path) -> None:
    """The column `n` was narrower in the first file; `m` may be widened."""
    extra = pa.table({"n": pa.array([1], pa.int32()), "m": pa.array([1], pa.int32())})
    schema = pa.schema([*table_of().schema, *extra.schema])
    table = DeltaTable.create(
        table_root(folder), schema, partition_by=["p"], configuration={**TIMES, WIDENING: "true"}
    )
    for first in (0, 10, 20):
        write_deltalake(table, table_of(*ALL_ROWS[first : first + 10]), mode="append")
        if first == 0:
            table.alter.change_type("n", LONG)


def _v2(folder: Path) -> None:
    table = _filled(table_root(folder), {**TIMES, "delta.checkpointPolicy": "v2"})
    write_checkpoint(table.snapshot)


def _due(folder: Path) -> None:
    """Vectors are in use no more, and were longer than a day ago."""
    table = _filled(table_root(folder), BY_DELETION_VECTORS)
    with suppress(FeatureRemovalError):
        table.alter.drop_feature(DELETION_VECTORS, truncate_history=True)
    assert not DeltaTable(table_root(folder)).snapshot.files.has_deletion_vectors
    age(table_root(folder))


def _protected(folder: Path) -> None:
    """Vectors were dropped, longer than a day ago."""
    _filled(table_root(folder), BY_DELETION_VECTORS).alter.drop_feature(DELETION_VECTORS)
    age(table_root(folder))


def _numbered(folder: Path) -> None:
    column = define_identity(
        StructField(name="id", data_type=LONG), start=1, step=1, allow_explicit_insert=True
    )
    text = [StructField(name=name, data_type=STRING) for name in ("p", "v")]
    table = DeltaTable.create(
        table_root(folder), StructType((column, *text)), partition_by=["p"], configuration=TIMES
    )
    write_deltalake(table, table_of(*ALL_ROWS), mode="append")


def _clustered(folder: Path) -> None:
    table = DeltaTable.create(
        table_root(folder), table_of().schema, cluster_by=["id", "v"], configuration=TRACKED
    )
    for first in (0, 10, 20):
        write_deltalake(table, table_of(*ALL_ROWS[first : first + 10]), mode="append")


_MAKERS: dict[FeaturedStart, Callable[[Path], object]] = {
    FeaturedStart.DELETION_VECTORS: lambda folder: _filled(table_root(folder), BY_DELETION_VECTORS),
    FeaturedStart.REWRITTEN: lambda folder: _filled(table_root(folder), REWRITTEN),
    FeaturedStart.UNTRACKED: lambda folder: _filled(table_root(folder), TIMES),
    FeaturedStart.SOURCE: _source,
    FeaturedStart.CLONE: _clone,
    FeaturedStart.FILES: _files,
    FeaturedStart.FEED: lambda folder: _filled(table_root(folder), {**TIMES, FEED: "true"}),
    FeaturedStart.MAPPED: lambda folder: _filled(table_root(folder), MAPPED),
    FeaturedStart.WIDENED: _widened,
    FeaturedStart.V2: _v2,
    FeaturedStart.DUE: _due,
    FeaturedStart.PROTECTED: _protected,
    FeaturedStart.NUMBERED: _numbered,
    FeaturedStart.ICEBERG: lambda folder: _filled(table_root(folder), {**TIMES, ICEBERG: "true"}),
    FeaturedStart.ICEBERG_LATER: lambda folder: _filled(table_root(folder), {**MAPPED, MATERIALISED: "true"}),
    FeaturedStart.CLUSTERED: _clustered,
}
