"""Finds the positions of the rows in a table's files for which a predicate is true.

Files that a scan would skip are skipped. When the partition values decide, no file is read. Otherwise the
columns of the predicate are read once. Rows for which the predicate is null do not match. Rows that a
deletion vector deletes are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.deletion_vectors.file_update import (
    DeletedRows,
    DeletionVectorUnion,
    physical_records,
    unite,
)
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.expressions.ast import TRUE, Expression
from delta_core.scan.partition_pruning import partition_mask, split_by_partition_columns
from delta_core.scan.record_batches import FileReader
from delta_core.scan.row_tracking import FileRowTracking, RowTrackingReader
from delta_core.scan.scan import Scan, canonical_names
from delta_core.schema.types import LONG, StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.transaction.file_actions import add_actions

_NOTHING: Final[Positions] = np.empty(0, np.int64)
_MOST_THREADS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileMatch:
    """A live file with matching rows.

    Attributes:
        index: the file's row in `FoundRows.candidates`.
        file: the live file.
        rows: the deleted rows of the file after the matching ones are deleted too. None when the log alone
            shows that every row matches.
    """

    index: int
    file: AddFile
    rows: DeletedRows | None

    @property
    def is_whole(self) -> bool:
        """Whether every remaining row of the file matches."""
        return self.rows is None or self.rows.num_deleted == self.rows.num_records

    @property
    def num_matching(self) -> int | None:
        """The number of matching rows; None when the log has no row count and the file was not read."""
        if self.rows is not None:
            return self.rows.num_newly_deleted
        count, dv = physical_records(self.file), self.file.deletion_vector
        return None if count is None else count - (0 if dv is None else dv.cardinality)

    @property
    def num_left(self) -> int:
        """The number of rows that do not match."""
        return 0 if self.rows is None else self.rows.num_records - self.rows.num_deleted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoundRows:
    """The files of a table with rows that match a predicate.

    Attributes:
        candidates: the files (LIVE_FILE_SCHEMA) that may hold matching rows. The outcome depends on them.
        matches: the candidates that hold matching rows, in the same order.
    """

    candidates: pa.Table
    matches: tuple[FileMatch, ...]

    @property
    def read_paths(self) -> tuple[str, ...]:
        """The paths of the candidates, as in the log."""
        return tuple(self.candidates.column("path").to_pylist())


def find_rows(
    snapshot: Snapshot, predicate: Expression | None, *, allowed_roots: Sequence[LogStore] = ()
) -> FoundRows:
    """Find the rows for which a predicate is true.

    Args:
        snapshot: the version of the table.
        predicate: the predicate, resolved against the table's schema; None stands for every row.
        allowed_roots: see `Scan`.

    Cost: no data is read for a predicate on partition columns only. Otherwise the predicate's columns of each
    candidate file are read once, without the row groups that the footer rules out, and each deletion vector
    of a candidate is read once. At most four files are read at a time. Memory: eight bytes for each matching
    row and for each row that a deletion vector of a candidate deletes.

    Raises:
        UnsupportedTableFeatureError: the table cannot be read.
        MissingDataFileError, PathEscapeError, InvalidTableError: see `Scan.to_batches`.
        ExpressionError: the predicate fails on a row.
    """
    predicate = TRUE if predicate is None else predicate
    scan = Scan(snapshot, predicate=predicate, allowed_roots=allowed_roots)
    candidates = scan.files()
    partition_columns = canonical_names(snapshot.schema, snapshot.partition_columns)
    on_partitions, on_rows = split_by_partition_columns(predicate, partition_columns)
    files = enumerate(add_actions(candidates, data_change=True))
    if on_rows == TRUE:
        mask = partition_mask(
            candidates,
            on_partitions,
            snapshot.schema,
            partition_columns,
            mapping=snapshot.column_mapping,
        )
        matches = (FileMatch(index=index, file=file, rows=None) for index, file in files if mask[index])
        return FoundRows(candidates=candidates, matches=tuple(matches))
    numbered = list(files)
    threads = min(len(numbered), os.cpu_count() or 1, _MOST_THREADS)
    reader = _PositionReader(snapshot, predicate, allowed_roots, use_threads=threads < 2)
    unions = _in_parallel(reader.union, [file for _, file in numbered], threads)
    return FoundRows(
        candidates=candidates,
        matches=tuple(
            FileMatch(index=index, file=file, rows=union)
            for (index, file), union in zip(numbered, unions, strict=True)
            if not union.is_unchanged
        ),
    )


def row_matcher(
    snapshot: Snapshot, predicate: Expression, *, allowed_roots: Sequence[LogStore] = ()
) -> Callable[[AddFile], bool]:
    """A function that reads a file of the table, and returns whether a predicate is true for one of its rows.

    Args:
        snapshot: a version with the file's schema.
        predicate: the predicate, resolved against the table's schema.
        allowed_roots: see `Scan`.
    """
    reader = _PositionReader(snapshot, predicate, allowed_roots, use_threads=True)
    return lambda file: not reader.union(file).is_unchanged


def _in_parallel(
    union: Callable[[AddFile], DeletionVectorUnion], files: Sequence[AddFile], threads: int
) -> Iterator[DeletionVectorUnion]:
    """The result for each file, in the order of the files. Several threads decode and compare."""
    if threads < 2:
        yield from map(union, files)
        return
    pool = ThreadPoolExecutor(threads, "deltaward-find")
    try:
        yield from pool.map(union, files)
    finally:
        pool.shutdown(cancel_futures=True)


class PositionColumn(RowTrackingReader):
    """Adds the position of each row in its file as a column of a scan."""

    def __init__(self, name: str) -> None:
        self.columns = (name,)

    @property
    def fields(self) -> list[StructField]:
        return [StructField(name=self.columns[0], data_type=LONG, nullable=False)]

    def names_in_file(self, names: Iterable[str]) -> list[str]:
        return []

    def arrays(
        self, read: Mapping[str, pa.Array], positions: Positions, numbers: FileRowTracking, path: str
    ) -> dict[str, pa.Array]:
        return {self.columns[0]: pa.array(positions, pa.int64())}


class _PositionReader:
    """Finds the positions of matching rows, file by file."""

    def __init__(
        self,
        snapshot: Snapshot,
        predicate: Expression,
        allowed_roots: Sequence[LogStore],
        *,
        use_threads: bool,
    ) -> None:
        self._store = snapshot.store
        self._access = DataAccess(allowed_roots=tuple(allowed_roots), clock=snapshot.clock)
        name = "_position"
        while snapshot.schema.find(name) is not None:
            name += "_"
        self._reader = FileReader(
            schema=snapshot.schema,
            columns=(),
            predicate=predicate,
            partition_columns=snapshot.partition_columns,
            mapping=snapshot.column_mapping,
            row_tracking=PositionColumn(name),
            access=self._access,
            use_threads=use_threads,
        )

    def union(self, file: AddFile) -> DeletionVectorUnion:
        already_deleted, num_records = _NOTHING, 0
        dv = file.deletion_vector

        def deleted(num_rows: int) -> Positions:
            nonlocal already_deleted, num_records
            num_records = num_rows
            if dv is not None:
                already_deleted = read_deletion_vector(
                    self._store, dv, num_rows=num_rows, access=self._access
                )
            return already_deleted

        location = self._access.locate(file.path, store=self._store)
        batches = self._reader.read(location.store, location.path, file.partition_values, deleted=deleted)
        parts = [batch.column(0).to_numpy(zero_copy_only=False) for batch in batches]
        matching = np.concatenate(parts) if parts else _NOTHING
        return unite(already_deleted, matching, num_records=num_records)
