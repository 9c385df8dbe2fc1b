"""Tables with deletion vectors, row ids, commit times and change data that operations start from, as folders.

Each holds the ids 0 to 9 and 10 to 19 in partition a and 20 to 29 in partition b, a file for each ten; where
there are vectors, row 15 went by one in the last version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable, clone_table, write_deltalake
from tests.concurrency.kill_points.places import SOURCE, TABLE, Place, table_root
from tests.concurrency.kill_points.tables import write_entries

Row = tuple[int, str, str]

TIMES = {"delta.enableInCommitTimestamps": "true"}
TRACKED = {**TIMES, "delta.enableRowTracking": "true"}
REWRITTEN = {**TRACKED, "delta.enableChangeDataFeed": "true"}
BY_VECTORS = {**REWRITTEN, "delta.enableDeletionVectors": "true"}

DELETED = 15

ALL_ROWS: tuple[Row, ...] = tuple((n, "a" if n < 20 else "b", f"v{n}") for n in range(30))
ROWS: tuple[Row, ...] = tuple(row for row in ALL_ROWS if row[0] != DELETED)
LATER: Row = (40, "b", "later")
"""What the source of a clone has besides, once the clone was made the first time."""


class FeaturedStart(StrEnum):
    """The table that an operation starts from."""

    VECTORS = "a table with deletion vectors and change data"
    REWRITTEN = "a table with change data that is rewritten"
    UNTRACKED = "a table without row ids"
    SOURCE = "another table"
    CLONE = "a clone of what its source was"
    FILES = "a folder of files"


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
    if properties == BY_VECTORS:
        table.delete(f"id = {DELETED}")
    return table


def _source(folder: Path) -> None:
    _filled(table_root(folder, SOURCE), BY_VECTORS)


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


_MAKERS: dict[FeaturedStart, Callable[[Path], object]] = {
    FeaturedStart.VECTORS: lambda folder: _filled(table_root(folder), BY_VECTORS),
    FeaturedStart.REWRITTEN: lambda folder: _filled(table_root(folder), REWRITTEN),
    FeaturedStart.UNTRACKED: lambda folder: _filled(table_root(folder), TIMES),
    FeaturedStart.SOURCE: _source,
    FeaturedStart.CLONE: _clone,
    FeaturedStart.FILES: _files,
}
