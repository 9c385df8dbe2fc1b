"""Reads the rows of data files, split into those that match a predicate and those that do not.

In a table with row tracking the rows have their row ids, so that a writer can copy the ids to another file
(PROTOCOL.md, "Writer Requirements for Row Tracking").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.data.row_batch import Array, MaterializedRowIds, RowBatch
from delta_core.data.write_plan import WritePlan
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.dml.find_rows import FileMatch
from delta_core.expressions.ast import Expression
from delta_core.scan.record_batches import FileReader, RowsOfFile
from delta_core.scan.row_tracking import ROW_COMMIT_VERSION, ROW_ID, FileRowTracking, RowTrackingReader
from delta_core.schema.arrow import field_to_arrow
from delta_core.schema.types import LONG, StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore

Mask: TypeAlias = "npt.NDArray[np.bool_]"
"""A Boolean for each row of a batch."""


class MatchedRows:
    """Reads all columns of the files of `FoundRows`, one file at a time. Memory: one row group.

    All methods raise the errors of `Scan.to_batches`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        predicate: Expression | None = None,
        allowed_roots: Sequence[LogStore] = (),
        unread: Collection[str] = (),
        use_threads: bool = True,
    ) -> None:
        """Prepare to read matched rows; nothing is read yet.

        Args:
            snapshot: the table that the files belong to.
            predicate: the predicate that the rows match. Row groups that it rules out are not decoded when
                only matching rows are read.
            allowed_roots: see `Scan`.
            unread: columns that the caller does not use. They are null.
            use_threads: see `FileReader`.
        """
        self._snapshot = snapshot
        self._unread = frozenset(unread)
        self._use_threads = use_threads
        self._access = DataAccess(allowed_roots=tuple(allowed_roots), clock=snapshot.clock)
        tracking = WritePlan.of(snapshot.protocol, snapshot.metadata).row_tracking
        ids = None if tracking is None else RowTrackingReader(tracking, (ROW_ID, ROW_COMMIT_VERSION))
        self._columns = _PositionsAndRowIds(ids, used_names=snapshot.schema.names)
        self._reader = self._file_reader(None)
        self._matching_reader = self._reader if predicate is None else self._file_reader(predicate)

    def remaining(self, match: FileMatch) -> Iterator[RowBatch]:
        """The rows that neither match nor are deleted. Empty when all rows of the file match."""
        if match.is_whole or match.rows is None:
            return
        deleted = match.rows.positions
        for batch, _ in self._batches(self._reader, match.file, deleted=lambda _: deleted):
            yield batch

    def matching(self, match: FileMatch) -> Iterator[RowBatch]:
        """The rows of a file that match the predicate."""
        rows = match.rows
        if rows is None:
            batches = self._batches(self._reader, match.file, deleted=self._deleted_in(match.file))
        else:
            batches = self._batches(self._matching_reader, match.file, only=lambda _: rows.newly_deleted)
        for batch, _ in batches:
            yield batch

    def both(self, match: FileMatch) -> Iterator[tuple[RowBatch, RowBatch]]:
        """The rows that do not match and those that match, batch by batch. The file is read once."""
        for batch, matches in self.marked(match):
            yield rows_where(batch, ~matches), rows_where(batch, matches)

    def marked(self, match: FileMatch) -> Iterator[tuple[RowBatch, Mask]]:
        """All live rows with a mask of the matching ones, batch by batch. The file is read once."""
        rows = match.rows
        if rows is None:
            for batch in self.matching(match):
                yield batch, np.ones(batch.num_rows, np.bool_)
            return
        before = np.setdiff1d(rows.positions, rows.newly_deleted, assume_unique=True)
        for batch, positions in self._batches(self._reader, match.file, deleted=lambda _: before):
            yield batch, _among(positions, rows.newly_deleted)

    def _file_reader(self, predicate: Expression | None) -> FileReader:
        snapshot = self._snapshot
        return FileReader(
            schema=snapshot.schema,
            columns=[name for name in snapshot.schema.names if name not in self._unread],
            predicate=predicate,
            partition_columns=snapshot.partition_columns,
            mapping=snapshot.column_mapping,
            row_tracking=self._columns,
            access=self._access,
            use_threads=self._use_threads,
        )

    def _deleted_in(self, file: AddFile) -> RowsOfFile | None:
        dv = file.deletion_vector
        if dv is None:
            return None
        store, access = self._snapshot.store, self._access
        return lambda num_rows: read_deletion_vector(store, dv, num_rows=num_rows, access=access)

    def _batches(
        self,
        reader: FileReader,
        file: AddFile,
        *,
        deleted: RowsOfFile | None = None,
        only: RowsOfFile | None = None,
    ) -> Iterator[tuple[RowBatch, Positions]]:
        location = self._access.locate(file.path, store=self._snapshot.store)
        numbers = FileRowTracking(
            base_row_id=file.base_row_id, default_row_commit_version=file.default_row_commit_version
        )
        for batch in reader.read(
            location.store, location.path, file.partition_values, deleted=deleted, only=only, numbers=numbers
        ):
            rows, positions = self._columns.split(batch)
            yield (self._with_unread(rows, len(positions)) if self._unread else rows), positions

    def _with_unread(self, batch: RowBatch, num_rows: int) -> RowBatch:
        # `num_rows` is an argument because a batch without columns has no row count.
        read = {name: batch.columns.column(name) for name in batch.columns.schema.names}
        fields, columns = [], []
        for field in map(field_to_arrow, self._snapshot.schema):
            is_read = field.name in read
            columns.append(read[field.name] if is_read else pa.nulls(num_rows, field.type))
            fields.append(field if is_read else field.with_nullable(True))
        return replace(batch, columns=pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))


class _PositionsAndRowIds(RowTrackingReader):
    """Adds the position of each row in its file and, with row tracking, its row id and row commit version.

    These columns follow the table's columns. Their names are chosen so that the table has no such column.
    """

    def __init__(self, ids: RowTrackingReader | None, *, used_names: Iterable[str]) -> None:
        self._ids = ids
        added = ("_position",) if ids is None else ("_position", *ids.columns)
        names = {name.casefold() for name in used_names}
        self.columns = tuple(_unused_name(name, names) for name in added)

    @property
    def fields(self) -> list[StructField]:
        return [StructField(name=name, data_type=LONG, nullable=False) for name in self.columns]

    def names_in_file(self, names: Iterable[str]) -> list[str]:
        return [] if self._ids is None else self._ids.names_in_file(names)

    def arrays(
        self, read: Mapping[str, pa.Array], positions: Positions, numbers: FileRowTracking, path: str
    ) -> dict[str, pa.Array]:
        arrays = [pa.array(positions, pa.int64())]
        if self._ids is not None:
            ids = self._ids.arrays(read, positions, numbers, path)
            arrays += [ids[name] for name in self._ids.columns]
        return dict(zip(self.columns, arrays, strict=True))

    def split(self, batch: pa.RecordBatch) -> tuple[RowBatch, Positions]:
        """The table's columns together with the row ids, and the positions."""
        width = batch.num_columns - len(self.columns)
        fields = [batch.schema.field(index) for index in range(width)]
        columns = pa.RecordBatch.from_arrays(batch.columns[:width], schema=pa.schema(fields))
        positions = batch.column(width).to_numpy(zero_copy_only=False)
        if self._ids is None:
            return RowBatch(columns=columns), positions
        hidden = MaterializedRowIds(
            row_ids=batch.column(width + 1), row_commit_versions=batch.column(width + 2)
        )
        return RowBatch(columns=columns, hidden=hidden), positions


def _unused_name(name: str, used: set[str]) -> str:
    while name.casefold() in used:
        name += "_"
    return name


def rows_where(batch: RowBatch, mask: Mask) -> RowBatch:
    """The rows for which a mask is true."""
    if mask.all():
        return batch
    # A filter copies runs of rows; to take rows by their numbers costs ten times as much.
    chosen = pa.array(mask)
    hidden = batch.hidden
    return RowBatch(
        columns=batch.columns.filter(chosen),
        absent=batch.absent,
        hidden=None
        if hidden is None
        else MaterializedRowIds(
            row_ids=hidden.row_ids.filter(chosen),
            row_commit_versions=hidden.row_commit_versions.filter(chosen),
        ),
    )


def with_rows(batch: RowBatch, mask: Mask, new: RowBatch, *, columns: Iterable[str]) -> RowBatch:
    """The rows of a batch in their order, with new rows in place of those for which a mask is true.

    Args:
        batch: all rows.
        mask: a Boolean for each row of `batch`.
        new: the new rows, one for each true value of the mask. The row ids of `batch` are kept.
        columns: the columns in which the new rows differ. Other columns are not copied.
    """
    if mask.all():
        return new
    # Indexes into all old rows followed by the new rows.
    chosen = np.arange(batch.num_rows)
    chosen[mask] = np.arange(batch.num_rows, batch.num_rows + new.num_rows)
    indexes = pa.array(chosen)

    def mixed(old: Array, other: Array) -> pa.Array:
        chunks = [chunk for part in (old, other) for chunk in _chunks(part)]
        return pa.concat_arrays(chunks).take(indexes)

    rows = batch.columns
    for name in columns:
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(
            index, new.columns.schema.field(name), mixed(rows.column(name), new.columns.column(name))
        )
    hidden = batch.hidden
    if hidden is not None and new.hidden is not None:
        versions = mixed(hidden.row_commit_versions, new.hidden.row_commit_versions)
        hidden = MaterializedRowIds(row_ids=hidden.row_ids, row_commit_versions=versions)
    return RowBatch(columns=rows, hidden=hidden)


def _chunks(column: Array) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _among(positions: Positions, others: Positions) -> Mask:
    """For each of `positions`, whether it is among `others`. Both are ascending."""
    if not len(positions):
        return np.zeros(0, np.bool_)
    first, last = np.searchsorted(others, (positions[0], positions[-1] + 1))
    return np.isin(positions, others[first:last], assume_unique=True)
