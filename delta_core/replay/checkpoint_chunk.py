"""The files of a checkpoint's row groups. Columns are decoded on demand."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.arrow_schema import DELETION_VECTOR_TYPE, LIVE_FILE_SCHEMA
from delta_core.errors import CorruptLogError
from delta_core.forks import renew_lock_in_children
from delta_core.log.checkpoint_part import CheckpointPart, damaged_checkpoint
from delta_core.replay.column_types import MalformedColumn, as_type
from delta_core.replay.file_chunk import PARTITION, FileChunk, Memo
from delta_core.replay.map_strings import (
    CodedMap,
    CodedStrings,
    coded_map,
    coded_strings,
    plain_map,
    require_map_of_strings,
)
from delta_core.replay.parsed_statistics import statistics_to_json
from delta_core.replay.tail import LIVE_JSON_KEYS

# Decoded together when a chunk is opened, since most operations need path, partition or size.
EAGER_COLUMNS = ("path", "partition_values", "size_bytes")

_DELETION_VECTOR_LEAVES = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")

_Rows = range | npt.NDArray[np.int64] | None
"""Rows of a row group: a range, row numbers, or all rows (None)."""


def _as_range(rows: npt.NDArray[np.int64]) -> _Rows:
    # Writers put other actions before or after the files, so the files are usually one range.
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return range(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _cut(values: pa.Array, rows: _Rows) -> pa.Array:
    if rows is None:
        return values
    if isinstance(rows, range):
        return values.slice(rows.start, len(rows))
    return values.take(pa.array(rows))


def checkpoint_chunks(part: CheckpointPart, row_group: int) -> list[FileChunk]:
    """The files of one row group. Decodes EAGER_COLUMNS.

    Raises:
        CorruptLogError: the columns cannot be decoded, or a size is missing or negative.
    """
    shared = _RowGroup(part, row_group)
    return [chunk for index in range(shared.num_runs) if (chunk := CheckpointChunk(shared, index)).num_rows]


def stream_column(
    chunks: Sequence[FileChunk], name: str, *, rows: int
) -> Iterator[tuple[FileChunk, pa.Array]]:
    """A column of some chunks, piece by piece. Newly decoded data is not kept in memory.

    For large columns that are needed once: the statistics of a million files take 300 MB as JSON.

    Args:
        chunks: the chunks, in the order of a set of files.
        name: the name of a column of LIVE_FILE_SCHEMA.
        rows: the maximum number of rows of a piece.

    Yields:
        A chunk and the next piece of its column: every row of every chunk once, in order.

    Raises:
        CorruptLogError: the column cannot be decoded.
    """
    for group, run in groupby(chunks, key=lambda chunk: getattr(chunk, "row_group", None)):
        members = list(run)
        if group is None or group.has("stats_parsed") or not group.has(name):
            for chunk in members:
                values = chunk.uncached_column(name)
                for start in range(0, len(values), rows):
                    yield chunk, values.slice(start, rows)
            continue
        by_index = {chunk.index: chunk for chunk in members if isinstance(chunk, CheckpointChunk)}
        for index, start, values in group.stream(name, rows):
            if index in by_index:
                yield by_index[index], by_index[index].converted(name, start, values)


class _RowGroup:
    """The rows of a row group in runs. A column is decoded for all runs when it is first needed."""

    def __init__(self, part: CheckpointPart, row_group: int) -> None:
        self.part = part
        self.number = row_group
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._columns: dict[str, list[pa.Array | None]] = {}
        eager = [name for name in EAGER_COLUMNS if self.has(name)]
        runs = part.read(row_group, "add", [LIVE_JSON_KEYS[name] for name in eager])
        self.num_runs = len(runs)
        self.lengths = [len(rows) for rows in runs]
        for name in eager:
            self._columns[name] = [self._field(rows, name) for rows in runs]

    def has(self, name: str) -> bool:
        """True when the file has the column."""
        return self.part.has(f"add.{_leaf(name)}")

    def column(self, name: str, index: int) -> pa.Array:
        """One column of one run, as stored in the file; rows of other actions are null."""
        with self._lock:
            # A released run is decoded again: a chunk whose conversion failed must fail the same way again.
            if name not in self._columns or self._columns[name][index] is None:
                runs = self.part.read(self.number, "add", [_leaf(name)])
                if [len(rows) for rows in runs] != self.lengths:
                    raise self._wrong_length(name)
                self._columns[name] = [self._field(rows, name) for rows in runs]
            return self._columns[name][index]

    def stream(self, name: str, rows: int) -> Iterator[tuple[int, int, pa.Array]]:
        """Pieces of a column, each with the index of its run and its first row in the run. None is kept."""
        index, start = 0, 0
        for piece in self.part.stream(self.number, "add", [_leaf(name)], rows=rows):
            values = self._field(piece, name)
            while len(values) and index < len(self.lengths):
                in_run = values.slice(0, self.lengths[index] - start)
                yield index, start, in_run
                values, start = values.slice(len(in_run)), start + len(in_run)
                if start == self.lengths[index]:
                    index, start = index + 1, 0
            if len(values):
                break
        if index < len(self.lengths) or len(values):
            raise self._wrong_length(name)

    def release(self, name: str, index: int) -> None:
        """Drop a run of a column, since its chunk has the converted form."""
        with self._lock:
            self._columns[name][index] = None

    def _wrong_length(self, name: str) -> CorruptLogError:
        # The pages of this column end early.
        cause = f"The column add.{_leaf(name)} does not have {sum(self.lengths)} rows."
        return damaged_checkpoint(self.part.path, cause)

    def _field(self, rows: pa.StructArray, name: str) -> pa.Array:
        try:
            return pc.struct_field(rows, _leaf(name))
        except (pa.ArrowException, KeyError) as error:
            cause = f"The column add.{_leaf(name)} is invalid: {error}."
            raise damaged_checkpoint(self.part.path, cause) from error


def _leaf(name: str) -> str:
    """The checkpoint's name for a column of LIVE_FILE_SCHEMA; names of other columns stay unchanged."""
    return LIVE_JSON_KEYS.get(name, name)


class CheckpointChunk:
    """The files of one run of a row group. Columns are decoded when they are first needed, and kept.

    Attributes:
        row_group: the row group.
        index: the index of the run in the row group.
    """

    def __init__(self, shared: _RowGroup, index: int) -> None:
        self.row_group = shared
        self.index = index
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._columns: dict[str, pa.Array] = {}
        self.memo = Memo()
        self._partitions: CodedMap | None = None
        self._rows: _Rows = None
        total = shared.lengths[index]
        paths = shared.column("path", index)
        self._num_sizes = 0
        if shared.has("size_bytes"):
            self._num_sizes = total - shared.column("size_bytes", index).null_count
        if paths.null_count:
            self._rows = _as_range(np.flatnonzero(paths.is_valid().to_numpy(zero_copy_only=False)))
        self._num_rows = total if self._rows is None else len(self._rows)
        if self._num_rows or self._num_sizes:
            for name in EAGER_COLUMNS:
                self._columns[name] = self._decode(name)
            self._check()
            self._partitions = coded_map(self._columns["partition_values"])
            if self._partitions is not None:
                del self._columns["partition_values"]

    @property
    def num_rows(self) -> int:
        """The number of rows, including rows of removed files."""
        return self._num_rows

    def partition(self, name: str) -> CodedStrings:
        """The serialised values of one partition column, by physical name."""
        if self._partitions is not None:
            return self._partitions.get(name)
        values: CodedStrings | None = self.memo.get((PARTITION, name))
        if values is None:
            values = coded_strings(self.column("partition_values"), name)
            self.memo.put((PARTITION, name), values)
        return values

    def column(self, name: str) -> pa.Array:
        """The column with this name. Raises CorruptLogError when it cannot be decoded."""
        if name == "partition_values" and self._partitions is not None:
            return self._partitions.to_map()
        with self._lock:
            values = self._columns.get(name)
            if values is None:
                values = self._columns[name] = self._decode(name)
            return values

    def uncached_column(self, name: str) -> pa.Array:
        """One column like `column`, but a newly decoded column is not kept in memory."""
        if name == "partition_values" and self._partitions is not None:
            return self._partitions.to_map()
        with self._lock:
            values = self._columns.get(name)
            return self._decode(name) if values is None else values

    def maybe_has_deletion_vectors(self) -> bool:
        """False when the footer proves that no row has a deletion vector."""
        group = self.row_group
        return group.part.present_rows(group.number, "add.deletionVector.storageType") != 0

    def kept(self, name: str, schema: pa.Schema) -> pa.RecordBatch | None:
        """The batch with this name from the store's cache, or None. No request."""
        columns = self.row_group.part.derived_columns
        return None if columns is None else columns.get(self._cache_name(name), schema, self._num_rows)

    def keep(self, name: str, batch: pa.RecordBatch) -> None:
        """Put a batch into the store's cache, if it has one."""
        columns = self.row_group.part.derived_columns
        if columns is not None:
            columns.put(self._cache_name(name), batch)

    def _cache_name(self, name: str) -> str:
        # The first row and the length identify the run.
        lengths = self.row_group.lengths[: self.index + 1]
        return f"{self.row_group.number}\n{sum(lengths[:-1])}\n{lengths[-1]}\n{name}"

    def converted(self, name: str, start: int, values: pa.Array) -> pa.Array:
        """The rows of files in a piece of a column that begins at row `start` of the run. Not kept."""
        return self._convert(name, values, self._rows_between(start, start + len(values)))

    def _rows_between(self, first: int, last: int) -> _Rows:
        rows = self._rows
        if rows is None:
            return None
        if isinstance(rows, range):
            return range(
                max(rows.start, first) - first, max(min(rows.stop, last), max(rows.start, first)) - first
            )
        low, high = np.searchsorted(rows, (first, last))
        return rows[low:high] - first

    def _decode(self, name: str) -> pa.Array:
        if self.row_group.has(name):
            values = self._convert(name, self.row_group.column(name, self.index), self._rows)
            self.row_group.release(name, self.index)
        else:
            values = pa.nulls(self._num_rows, LIVE_FILE_SCHEMA.field(name).type)
        if name == "stats" and values.null_count == len(values) and self.row_group.has("stats_parsed"):
            return self._statistics_from_columns()
        return values

    def _statistics_from_columns(self) -> pa.Array:
        """The JSON form of statistics that the checkpoint has only as typed columns."""
        try:
            values = self.row_group.column("stats_parsed", self.index)
            statistics = statistics_to_json(_cut(values, self._rows))
        except (pa.ArrowException, KeyError, TypeError) as error:
            cause = f"The column add.stats_parsed is invalid: {error}."
            raise damaged_checkpoint(self.row_group.part.path, cause) from error
        self.row_group.release("stats_parsed", self.index)
        return statistics

    def _convert(self, name: str, values: pa.Array, rows: _Rows) -> pa.Array:
        target = LIVE_FILE_SCHEMA.field(name).type
        try:
            values = _cut(values, rows)
            # Damaged pages decode to invalid strings, and to codes outside of their dictionary.
            values.validate(full=True)
            if target == DELETION_VECTOR_TYPE:
                return deletion_vectors(values)
            if pa.types.is_map(target):
                require_map_of_strings(values.type)
                return values if name == "partition_values" else plain_map(values)
            return as_type(values, target)
        except (pa.ArrowException, KeyError, TypeError) as error:
            cause = f"The column add.{LIVE_JSON_KEYS[name]} is invalid: {error}."
            raise damaged_checkpoint(self.row_group.part.path, cause) from error

    def _check(self) -> None:
        sizes = self._columns["size_bytes"]
        if len(sizes) and not self.row_group.has("modification_time_ms"):
            # Every writer writes the column. Without it, the schema of the file is damaged.
            raise damaged_checkpoint(self.row_group.part.path, "The column add.modificationTime is missing.")
        if sizes.null_count:
            raise damaged_checkpoint(self.row_group.part.path, "A file has no size.")
        if self._num_sizes > self._num_rows:
            raise damaged_checkpoint(self.row_group.part.path, "A file has a size and no path.")
        if len(sizes) and pc.min(sizes).as_py() < 0:
            raise damaged_checkpoint(self.row_group.part.path, "A file has a negative size.")


def deletion_vectors(values: pa.StructArray) -> pa.StructArray:
    """Deletion vector descriptors with the log's names, as DELETION_VECTOR_TYPE.

    Raises:
        MalformedColumn: a descriptor lacks a required field, or a field has another type.
    """
    fields = [DELETION_VECTOR_TYPE.field(index) for index in range(DELETION_VECTOR_TYPE.num_fields)]
    present = {values.type.field(index).name for index in range(values.type.num_fields)}
    children = [
        as_type(pc.struct_field(values, leaf), item.type)
        if leaf in present
        else pa.nulls(len(values), item.type)
        for leaf, item in zip(_DELETION_VECTOR_LEAVES, fields, strict=True)
    ]
    absent = pc.is_null(children[0])
    for leaf, child in zip(_DELETION_VECTOR_LEAVES, children, strict=True):
        if leaf != "offset" and pc.any(pc.not_equal(pc.is_null(child), absent)).as_py():
            raise MalformedColumn(f"the field {leaf} of a deletion vector is missing or the only one")
    return pa.StructArray.from_arrays(children, fields=fields, mask=absent)
