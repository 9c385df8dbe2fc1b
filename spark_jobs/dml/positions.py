"""The rows that a statement deletes, by file: collected in the driver, or as bitmaps made in the executors.

Up to POSITIONS_IN_DRIVER positions come to the driver as they are. When there are more, Spark makes a bitmap
for each range of a file's rows, a task encodes them as one Roaring bitmap for each file, and only these come
to the driver, which decodes them one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.deletion_vectors.encode import encode_portable64
from delta_core.deletion_vectors.file_update import (
    DeletedRows,
    DeletionVectorUnion,
    count_records,
    physical_records,
    unite,
)
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions, decode_portable64
from delta_core.dml.find_rows import FileMatch, FoundRows
from delta_core.errors import JobFailedError
from delta_core.storage.parallel import parallel
from delta_core.transaction import add_actions
from spark_jobs.dml.source import Names
from spark_jobs.dml.target import TargetFiles
from spark_jobs.engine_io import TableReach
from spark_jobs.packaging import ensure_importable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POSITIONS_IN_DRIVER: Final = 4_000_000
"""The maximum number of positions that the driver collects: about 60 bytes each while they arrive."""

_BUCKET_BITS: Final = 15
"""Spark's `bitmap_construct_agg` makes bitmaps of so many bits, as a power of two."""

_NOTHING: Final[Positions] = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedRows:
    """The deleted rows of one file as counts, for a statement that copies the other rows.

    Attributes:
        num_records: the number of rows of the data file, including deleted rows.
        num_deleted, num_newly_deleted: see `DeletedRows`.
    """

    num_records: int
    num_deleted: int
    num_newly_deleted: int

    @property
    def positions(self) -> Positions:
        """Always an error, because only the counts are known."""
        raise JobFailedError(
            "The positions of deleted rows are not known.", fix="Report this as a bug of deltaward."
        )

    @property
    def newly_deleted(self) -> Positions:
        """Always an error, because only the counts are known."""
        return self.positions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BitmapRows:
    """The deleted rows of one file, where the new ones are a Roaring bitmap.

    Attributes:
        num_records: the number of rows of the data file, including deleted rows.
        num_newly_deleted: the number of rows in the bitmap. All of them were live before.
        bitmap: the rows in the portable format.
        known: reads the old deletion vector's rows.
        num_known: the number of rows of the old deletion vector.
    """

    num_records: int
    num_newly_deleted: int
    bitmap: bytes = field(repr=False)
    known: Callable[[], Positions] = field(repr=False)
    num_known: int

    @property
    def num_deleted(self) -> int:
        """The number of deleted rows after the change."""
        return self.num_known + self.num_newly_deleted

    @property
    def newly_deleted(self) -> Positions:
        """The rows of the bitmap."""
        return decode_portable64(self.bitmap, cardinality=self.num_newly_deleted)

    @property
    def positions(self) -> Positions:
        """All deleted rows. Reads the old deletion vector."""
        return unite(self.known(), self.newly_deleted, num_records=self.num_records).positions


def rows_at(places: DataFrame, target: TargetFiles, names: Names, *, most: int | None = None) -> FoundRows:
    """Collect the places of rows, by file. Runs one job, or two when the rows are many.

    Args:
        places: the columns `names.file` and `names.position`. A place may occur more than once. None is of a
            row that a deletion vector deletes already.
        target: the files that were scanned.
        names: the names of the columns.
        most: the maximum number of positions in the driver; POSITIONS_IN_DRIVER when None.

    Raises:
        JobFailedError: Spark reports an unknown file name.
        InvalidTableError: a position is not in its file.
        pyspark.errors.PySparkException: Spark failed.
    """
    found = collected(places.select(names.file, names.position), most=most)
    if found is not None:
        return rows_in(found, target, names)
    return _matches(target, _bitmaps(places, names))


def collected(rows: DataFrame, *, most: int | None = None) -> pa.Table | None:
    """The rows in the driver, by one job; None when there are more than `most` or POSITIONS_IN_DRIVER."""
    limit = POSITIONS_IN_DRIVER if most is None else most
    found = rows.limit(limit + 1).toArrow()
    return found if found.num_rows <= limit else None


def rows_in(places: pa.Table, target: TargetFiles, names: Names) -> FoundRows:
    """As `rows_at`, of places that are in the driver. Runs no job."""
    return _matches(target, _by_file(places.select([names.file, names.position])))


def rows_counted(places: DataFrame, target: TargetFiles, names: Names) -> FoundRows:
    """Count the rows to change, by file. One job; arguments and errors as for `rows_at`."""
    counted = places.groupBy(names.file).count().toArrow()
    counts = dict(zip(counted.column(0).to_pylist(), counted.column(1).to_pylist(), strict=True))
    return _matches(target, counts)


_New = Positions | tuple[bytes, int] | int
"""The rows to delete in a file: positions, a bitmap with its cardinality, or only their number."""


def _by_file(found: pa.Table) -> dict[str, _New]:
    if not found.num_rows:
        return {}
    files = found.column(0).combine_chunks()
    files = (files.chunk(0) if isinstance(files, pa.ChunkedArray) else files).dictionary_encode()
    codes = files.indices.to_numpy(zero_copy_only=False)
    positions = found.column(1).to_numpy()
    order = np.lexsort((positions, codes))
    codes, positions = codes[order], positions[order].astype(np.int64, copy=False)
    bounds = np.flatnonzero(np.diff(codes)) + 1
    starts, parts = np.append(0, bounds), np.split(positions, bounds)
    keys = files.dictionary.to_pylist()
    return {keys[codes[start]]: np.unique(part) for start, part in zip(starts, parts, strict=True)}


def _bitmaps(places: DataFrame, names: Names) -> dict[str, _New]:
    from pyspark.sql import functions as fn

    ensure_importable(places.sparkSession)
    # These functions count from one: the positions from 0 to 32,767 are in the bucket 1.
    place = fn.col(names.position) + fn.lit(1)
    buckets = places.groupBy(names.file, fn.bitmap_bucket_number(place).alias("bucket")).agg(
        fn.bitmap_construct_agg(fn.bitmap_bit_position(place)).alias("bits")
    )
    encoded = buckets.groupBy(names.file).applyInArrow(
        _encoder(names.file), "file string, cardinality bigint, bitmap binary"
    )
    return {row["file"]: (row["bitmap"], row["cardinality"]) for row in encoded.toArrow().to_pylist()}


def _encoder(file: str) -> Callable[[pa.Table], pa.Table]:
    def encode(buckets: pa.Table) -> pa.Table:
        parts = []
        for number, bits in zip(
            buckets.column("bucket").to_pylist(), buckets.column("bits").to_pylist(), strict=True
        ):
            chosen = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little"))
            parts.append(chosen.astype(np.int64) + ((number - 1) << _BUCKET_BITS))
        positions = np.sort(np.concatenate(parts)) if parts else _NOTHING
        return pa.table(
            {
                "file": pa.array(buckets.column(file).to_pylist()[:1], pa.string()),
                "cardinality": pa.array([len(positions)], pa.int64()),
                "bitmap": pa.array([encode_portable64(positions)], pa.binary()),
            }
        )

    return encode


def _matches(target: TargetFiles, found: Mapping[str, _New]) -> FoundRows:
    target.require_known(found)
    indexes = [index for index, key in enumerate(target.keys) if key in found]
    files = list(add_actions(target.live.take(pa.array(indexes, pa.int64())), data_change=True))
    calls = [
        partial(_rows, file, found[target.keys[index]], target.reach)
        for index, file in zip(indexes, files, strict=True)
    ]
    changed = parallel(target.reach.store, calls)
    return FoundRows(
        candidates=target.live,
        matches=tuple(_file_matches(indexes, files, changed)),
    )


def _file_matches(
    indexes: list[int], files: list[AddFile], changed: list[DeletedRows]
) -> Iterator[FileMatch]:
    for index, file, rows in zip(indexes, files, changed, strict=True):
        if rows.num_newly_deleted:
            yield FileMatch(index=index, file=file, rows=rows)


def _rows(file: AddFile, new: _New, reach: TableReach) -> DeletedRows:
    dv = file.deletion_vector
    records = physical_records(file)
    if records is None:
        records = count_records(reach.store, file, access=reach.access)
    num_known = 0 if dv is None else dv.cardinality

    def known() -> Positions:
        if dv is None:
            return _NOTHING
        return read_deletion_vector(reach.store, dv, num_rows=records, access=reach.access)

    if isinstance(new, int):
        return CountedRows(num_records=records, num_deleted=num_known + new, num_newly_deleted=new)
    if isinstance(new, tuple):
        bitmap, cardinality = new
        return BitmapRows(
            num_records=records,
            num_newly_deleted=cardinality,
            bitmap=bitmap,
            known=known,
            num_known=num_known,
        )
    union: DeletionVectorUnion = unite(known(), new, num_records=records)
    return union
