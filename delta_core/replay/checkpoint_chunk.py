"""The files of a checkpoint's row groups, decoded column by column when they are asked for."""

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

# Read together when a chunk is opened: identity, partition and size answer most questions.
EAGER_COLUMNS = ("path", "partition_values", "size_bytes")

_DELETION_VECTOR_LEAVES = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")

_Rows = range | npt.NDArray[np.int64] | None
"""Rows of a row group: a run of them, some of them by number, or all (None)."""


def _chosen(rows: npt.NDArray[np.int64]) -> _Rows:
    # Writers put the other actions before or after the files, so the files are nearly always one run.
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
        CorruptLogError: they cannot be decoded, or a size is missing or negative.
    """
    shared = _RowGroup(part, row_group)
    return [chunk for index in range(shared.num_runs) if (chunk := CheckpointChunk(shared, index)).num_rows]


def stream_column(
    chunks: Sequence[FileChunk], name: str, *, rows: int
) -> Iterator[tuple[FileChunk, pa.Array]]:
    """A column of some chunks, piece by piece; what has to be decoded for it is not kept.

    For large columns that are looked at once: the texts of a million files' statistics take 300 MB.

    Args:
        chunks: in the order of a set of files.
        name: in LIVE_FILE_SCHEMA.
        rows: how long a piece may be.

    Yields:
        A chunk, and what comes next of its column; every row of every chunk once, in order.

    Raises:
        CorruptLogError: it cannot be decoded.
    """
    for group, run in groupby(chunks, key=lambda chunk: getattr(chunk, "row_group", None)):
        members = list(run)
        if group is None or group.has("stats_parsed") or not group.has(name):
            for chunk in members:
                values = chunk.passing(name)
                for start in range(0, len(values), rows):
                    yield chunk, values.slice(start, rows)
            continue
        by_index = {chunk.index: chunk for chunk in members if isinstance(chunk, CheckpointChunk)}
        for index, start, values in group.stream(name, rows):
            if index in by_index:
                yield by_index[index], by_index[index].converted(name, start, values)


class _RowGroup:
    """A row group's rows in runs; a column is decoded for all of them when it is first asked for."""

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
        """Whether the file has the column."""
        return self.part.has(f"add.{_leaf(name)}")

    def column(self, name: str, index: int) -> pa.Array:
        """One column of one run, as the file has it; rows of other actions are null."""
        with self._lock:
            # Released already: a chunk that failed on the way asks again, and must fail the same way.
            if name not in self._columns or self._columns[name][index] is None:
                runs = self.part.read(self.number, "add", [_leaf(name)])
                if [len(rows) for rows in runs] != self.lengths:
                    raise self._of_other_length(name)
                self._columns[name] = [self._field(rows, name) for rows in runs]
            return self._columns[name][index]

    def stream(self, name: str, rows: int) -> Iterator[tuple[int, int, pa.Array]]:
        """Pieces of a column, with the run that each belongs to and its place there; none is kept."""
        index, start = 0, 0
        for piece in self.part.stream(self.number, "add", [_leaf(name)], rows=rows):
            values = self._field(piece, name)
            while len(values) and index < len(self.lengths):
                taken = values.slice(0, self.lengths[index] - start)
                yield index, start, taken
                values, start = values.slice(len(taken)), start + len(taken)
                if start == self.lengths[index]:
                    index, start = index + 1, 0
            if len(values):
                break
        if index < len(self.lengths) or len(values):
            raise self._of_other_length(name)

    def release(self, name: str, index: int) -> None:
        """Forget a run of a column: its chunk has it converted now."""
        with self._lock:
            self._columns[name][index] = None

    def _of_other_length(self, name: str) -> CorruptLogError:
        # The pages of this column end early.
        cause = f"add.{_leaf(name)}: it does not have {sum(self.lengths)} rows"
        return damaged_checkpoint(self.part.path, cause)

    def _field(self, rows: pa.StructArray, name: str) -> pa.Array:
        try:
            return pc.struct_field(rows, _leaf(name))
        except (pa.ArrowException, KeyError) as error:
            raise damaged_checkpoint(self.part.path, f"add.{_leaf(name)}: {error}") from error


def _leaf(name: str) -> str:
    """What a column of LIVE_FILE_SCHEMA, or one that only checkpoints have, is called in a checkpoint."""
    return LIVE_JSON_KEYS.get(name, name)


class CheckpointChunk:
    """The files of a run of a row group; columns are decoded when first asked for, and kept.

    Attributes:
        row_group: where they are.
        index: which of its runs they are.
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
            self._rows = _chosen(np.flatnonzero(paths.is_valid().to_numpy(zero_copy_only=False)))
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
        """Rows, dead ones included."""
        return self._num_rows

    def partition(self, name: str) -> CodedStrings:
        """The serialised values of one partition column, by physical name."""
        if self._partitions is not None:
            return self._partitions.get(name)
        found: CodedStrings | None = self.memo.get((PARTITION, name))
        if found is None:
            found = coded_strings(self.column("partition_values"), name)
            self.memo.put((PARTITION, name), found)
        return found

    def column(self, name: str) -> pa.Array:
        """One column. Raises CorruptLogError when it cannot be decoded."""
        if name == "partition_values" and self._partitions is not None:
            return self._partitions.to_map()
        with self._lock:
            found = self._columns.get(name)
            if found is None:
                found = self._columns[name] = self._decode(name)
            return found

    def passing(self, name: str) -> pa.Array:
        """As `column`, but not kept by what has not asked for it before."""
        if name == "partition_values" and self._partitions is not None:
            return self._partitions.to_map()
        with self._lock:
            found = self._columns.get(name)
            return self._decode(name) if found is None else found

    def maybe_has_deletion_vectors(self) -> bool:
        """False when the footer proves that no row has one."""
        group = self.row_group
        return group.part.present_rows(group.number, "add.deletionVector.storageType") != 0

    def kept(self, name: str, schema: pa.Schema) -> pa.RecordBatch | None:
        """What another process has kept of the chunk. No request."""
        columns = self.row_group.part.derived_columns
        return None if columns is None else columns.get(self._kept_name(name), schema, self._num_rows)

    def keep(self, name: str, batch: pa.RecordBatch) -> None:
        """Keep it in the store's cache, if it has one."""
        columns = self.row_group.part.derived_columns
        if columns is not None:
            columns.put(self._kept_name(name), batch)

    def _kept_name(self, name: str) -> str:
        # Runs begin where the ones before end.
        lengths = self.row_group.lengths[: self.index + 1]
        return f"{self.row_group.number}\n{sum(lengths[:-1])}\n{lengths[-1]}\n{name}"

    def converted(self, name: str, start: int, values: pa.Array) -> pa.Array:
        """The files' part of a piece of a column that begins at a row of the run; it is not kept."""
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
            found = self._convert(name, self.row_group.column(name, self.index), self._rows)
            self.row_group.release(name, self.index)
        else:
            found = pa.nulls(self._num_rows, LIVE_FILE_SCHEMA.field(name).type)
        if name == "stats" and found.null_count == len(found) and self.row_group.has("stats_parsed"):
            return self._statistics_from_columns()
        return found

    def _statistics_from_columns(self) -> pa.Array:
        """The JSON form of statistics that the checkpoint has as columns only."""
        try:
            values = self.row_group.column("stats_parsed", self.index)
            found = statistics_to_json(_cut(values, self._rows))
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise damaged_checkpoint(self.row_group.part.path, f"add.stats_parsed: {error}") from error
        self.row_group.release("stats_parsed", self.index)
        return found

    def _convert(self, name: str, values: pa.Array, rows: _Rows) -> pa.Array:
        wanted = LIVE_FILE_SCHEMA.field(name).type
        try:
            values = _cut(values, rows)
            # Damaged pages decode to invalid text and to codes beyond their dictionary.
            values.validate(full=True)
            if wanted == DELETION_VECTOR_TYPE:
                return deletion_vectors(values)
            if pa.types.is_map(wanted):
                require_map_of_strings(values.type)
                return values if name == "partition_values" else plain_map(values)
            return as_type(values, wanted)
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise damaged_checkpoint(
                self.row_group.part.path, f"add.{LIVE_JSON_KEYS[name]}: {error}"
            ) from error

    def _check(self) -> None:
        sizes = self._columns["size_bytes"]
        if len(sizes) and not self.row_group.has("modification_time_ms"):
            # Every writer writes it; without the column the schema itself is damaged.
            raise damaged_checkpoint(self.row_group.part.path, "no file has a modificationTime")
        if sizes.null_count:
            raise damaged_checkpoint(self.row_group.part.path, "a file has no size")
        if self._num_sizes > self._num_rows:
            raise damaged_checkpoint(self.row_group.part.path, "a file has a size and no path")
        if len(sizes) and pc.min(sizes).as_py() < 0:
            raise damaged_checkpoint(self.row_group.part.path, "a file has a negative size")


def deletion_vectors(values: pa.StructArray) -> pa.StructArray:
    """A log's deletion vector descriptors as DELETION_VECTOR_TYPE.

    Raises:
        MalformedColumn: one lacks a field that all have, or a field is of another type.
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
            raise MalformedColumn(f"a deletion vector has no {leaf}, or only that")
    return pa.StructArray.from_arrays(children, fields=fields, mask=absent)
