"""The source of a MERGE in Arrow. It is read once, because a second read could return different rows."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.dml.input_data import as_rows
from delta_core.errors import DeltaError, InputDataError, SchemaMismatchError, StorageError
from delta_core.errors.definitions import unreadable_data
from delta_core.expressions.ast import Expression
from delta_core.expressions.evaluate import evaluate
from delta_core.merge.condition import MOST_LISTED, KeyEquality, KeyValues
from delta_core.merge.names import MergeNames, Struct, one_array
from delta_core.schema.arrow import from_arrow, to_arrow
from delta_core.schema.enforcement import conform
from delta_core.schema.types import StructType

SPILL_BYTES: Final = 256 << 20
"""A stream that is larger is kept in a temporary file, and not in memory."""

FEW_ROWS: Final = 5_000
"""Up to this number of source rows, all values of each key are listed, and not only their range."""

_SMALL_BYTES: Final = 64 << 20
_BLOCK_ROWS: Final = 1 << 18
_SPILLED_ROWS: Final = 1 << 16

# Streams that a merge has begun to read. Read again they would seem empty, and all rows without a match.
_READ: Final[WeakSet[pa.RecordBatchReader]] = WeakSet()

Rows = npt.NDArray[np.int64]
"""Numbers of rows, counted from 0."""


class SourceRows(Protocol):
    """Where the rows of a source are."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        ...

    def blocks(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns of all rows, in order, in blocks of at most 262,144 rows."""
        ...

    def taken(self, names: Sequence[str], chosen: Rows) -> list[pa.Array]:
        """The columns of chosen rows. May be called by several threads."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeSource:
    """The rows of the source, in the types of `schema`.

    Attributes:
        schema: the columns.
        stored: the rows.
    """

    schema: StructType
    stored: SourceRows

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.stored.num_rows

    def rows(self, names: Sequence[str], chosen: Rows) -> Struct | None:
        """The chosen rows of some columns as one struct array; None without columns."""
        return _struct(names, self.stored.taken(names, chosen)) if names else None

    def value_blocks(self, expression: Expression, names: MergeNames) -> Iterator[pa.Array]:
        """The values of an expression over the source for every row, block by block."""
        columns = names.columns_of(names.source_alias, [expression])
        for block in self.stored.blocks(columns):
            struct = _struct(columns, block.columns) if columns else None
            data = names.data(block.num_rows, target=None, source=struct)
            yield one_array(evaluate(expression, data))

    def values(self, expression: Expression, names: MergeNames) -> pa.ChunkedArray:
        """The value of an expression over the source, for every row. Evaluated in blocks."""
        parts = list(self.value_blocks(expression, names))
        return pa.chunked_array(parts or [self._nothing(expression, names)])

    def values_of(self, expression: Expression, names: MergeNames, chosen: Rows) -> pa.Array:
        """The values of an expression over the source for chosen rows."""
        columns = names.columns_of(names.source_alias, [expression])
        data = names.data(len(chosen), target=None, source=self.rows(columns, chosen))
        return one_array(evaluate(expression, data))

    def type_of(self, expression: Expression, names: MergeNames) -> pa.DataType:
        """The Arrow type of the values of an expression over the source."""
        return self._nothing(expression, names).type

    def _nothing(self, expression: Expression, names: MergeNames) -> pa.Array:
        columns = names.columns_of(names.source_alias, [expression])
        empty = to_arrow(self.schema).empty_table()
        struct = _struct(columns, [one_array(empty.column(name)) for name in columns]) if columns else None
        return one_array(evaluate(expression, names.data(0, target=None, source=struct)))

    def key_values(self, equality: KeyEquality, keys: Iterable[pa.Array]) -> KeyValues | None:
        """The values of an equality that limit the target's files; None when they do not.

        Args:
            equality: the equality.
            keys: the source's values of it, in blocks.
        """
        if not equality.prunes:
            return None
        try:
            return _limits(keys, lists=self.num_rows <= FEW_ROWS or equality.lists)
        except (ValueError, OverflowError):
            return None  # Python has no date or time for a value, such as one after the year 9999.


def _limits(keys: Iterable[pa.Array], *, lists: bool) -> KeyValues:
    """The distinct values, when they are few and wanted, or the smallest and the largest value."""
    listed: pa.Array | None = None
    bounds: list[pa.StructScalar] = []
    for block in keys:
        bounds.append(pc.min_max(block))
        if lists:
            distinct = pc.unique(block).drop_null()
            listed = distinct if listed is None else pc.unique(pa.concat_arrays([listed, distinct]))
            lists = len(listed) <= MOST_LISTED
    if lists:
        return KeyValues(listed=() if listed is None else tuple(listed.to_pylist()))
    lows = [bound["min"] for bound in bounds if bound["min"].is_valid]
    highs = [bound["max"] for bound in bounds if bound["max"].is_valid]
    if not lows:
        return KeyValues()
    low = pc.min(pa.array(lows, lows[0].type))
    high = pc.max(pa.array(highs, highs[0].type))
    return KeyValues(low=low.as_py(), high=high.as_py())


def _struct(names: Sequence[str], arrays: Sequence[pa.Array]) -> Struct:
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    return pa.StructArray.from_arrays(list(arrays), fields=fields)


class _HeldRows:
    """Rows in memory."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.num_rows = int(table.num_rows)

    def blocks(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        part = self._table.select(list(names))
        for start in range(0, self.num_rows, _BLOCK_ROWS):
            block = part.slice(start, _BLOCK_ROWS)
            yield _batch([one_array(column) for column in block.columns], block.schema, block.num_rows)

    def taken(self, names: Sequence[str], chosen: Rows) -> list[pa.Array]:
        return [_taken(self._table.column(name), chosen) for name in names]


class _FileRows:
    """Rows in a file of Arrow. It is read, not mapped: mapped pages would count as memory of the process."""

    def __init__(self, path: Path, schema: pa.Schema, counts: Sequence[int]) -> None:
        self._path, self._schema = path, schema
        self._starts = np.cumsum([0, *counts])
        self.num_rows = int(self._starts[-1])

    @contextmanager
    def _opened(self, names: Sequence[str]) -> Iterator[pa.ipc.RecordBatchFileReader]:
        places = sorted(self._schema.get_field_index(name) for name in names)
        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        with (
            pa.OSFile(str(self._path), "rb") as file,
            pa.ipc.open_file(file, options=options) as reader,
        ):
            yield reader

    def blocks(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if not names:
            for count in np.diff(self._starts):
                yield _batch([], pa.schema([]), int(count))
            return
        with self._opened(names) as reader:
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index).select(list(names))

    def taken(self, names: Sequence[str], chosen: Rows) -> list[pa.Array]:
        order: Rows | None = None
        ordered = chosen
        if len(chosen) > 1 and bool((chosen[1:] < chosen[:-1]).any()):
            order = np.argsort(chosen, kind="stable")
            ordered = chosen[order]
        cuts = np.searchsorted(ordered, self._starts)
        parts: list[pa.RecordBatch] = []
        with self._opened(names) as reader:
            for index in np.flatnonzero(np.diff(cuts)):
                rows = ordered[cuts[index] : cuts[index + 1]] - self._starts[index]
                parts.append(reader.get_batch(int(index)).select(list(names)).take(pa.array(rows)))
        if not parts:
            return [pa.array([], self._schema.field(name).type) for name in names]
        arrays = [pa.concat_arrays([part.column(place) for part in parts]) for place in range(len(names))]
        if order is None:
            return arrays
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        indexes = pa.array(places)
        return [array.take(indexes) for array in arrays]


def _batch(arrays: Sequence[pa.Array], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))


def columns_of(data: Any) -> tuple[Any, StructType]:
    """The data as Arrow rows that are not read yet, and their columns.

    Raises:
        ConfigurationError: the object has no Arrow interface.
        SchemaMismatchError: two columns have the same name.
        SchemaError: a column has a type that tables do not have.
    """
    scanner = getattr(data, "scanner", None)
    if scanner is not None and not hasattr(data, "__arrow_c_stream__"):
        data = scanner().to_reader()
    rows = as_rows(data)
    names = [name.casefold() for name in rows.schema.names]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise SchemaMismatchError(
            f"The source has the column {duplicates[0]!r} twice.",
            cause="Column names are compared without case.",
            fix="Drop or rename one of the columns.",
        )
    return rows, from_arrow(rows.schema)


@contextmanager
def fixed_source(rows: Any, schema: StructType, *, spill_bytes: int = SPILL_BYTES) -> Iterator[MergeSource]:
    """Read the source once. A stream of more than `spill_bytes` goes to a private temporary file.

    Raises:
        InputDataError: the stream failed, or a merge has read it before.
        StorageError: the temporary file cannot be written.
    """
    if isinstance(rows, pa.Table):
        table = _in_few_chunks(conform(schema, rows))
        yield MergeSource(schema=schema, stored=_HeldRows(table))
        return
    if rows in _READ:
        raise InputDataError(
            "The source of the merge is a stream that a merge has read before.",
            cause="It has no rows left, so every row of the table would be without a match.",
            fix="Call merge again with a new stream, or pass a table.",
        )
    _READ.add(rows)
    folder: str | None = None
    try:
        batches: list[pa.RecordBatch] = []
        total = 0
        read = _conformed(rows, schema)
        for batch in read:
            batches.append(batch)
            total += batch.nbytes
            if total > spill_bytes:
                break
        if total <= spill_bytes:
            table = pa.Table.from_batches(batches, to_arrow(schema))
            yield MergeSource(schema=schema, stored=_HeldRows(_in_few_chunks(table)))
            return
        try:
            folder = tempfile.mkdtemp(prefix="deltaward-merge-")
            path = Path(folder) / "source.arrow"
            counts = _spill(path, to_arrow(schema), batches, read)
        except OSError as error:
            raise StorageError(
                "The source of the merge cannot be kept in a temporary file.",
                cause=str(error),
                fix="Free space in the directory of temporary files, or set TMPDIR to another one.",
            ) from error
        yield MergeSource(schema=schema, stored=_FileRows(path, to_arrow(schema), counts))
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _spill(
    path: Path, schema: pa.Schema, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]
) -> list[int]:
    """Write batches to a file of Arrow, and return their numbers of rows."""
    counts = []
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        while (batch := held.pop(0) if held else next(rest, None)) is not None:
            for start in range(0, batch.num_rows, _SPILLED_ROWS):
                part = batch.slice(start, _SPILLED_ROWS)
                writer.write_batch(part)
                counts.append(part.num_rows)
    return counts


def _conformed(rows: pa.RecordBatchReader, schema: StructType) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = rows.read_next_batch()
        except StopIteration:
            return
        except DeltaError:
            raise
        except Exception as error:
            raise unreadable_data(error) from error
        yield conform(schema, batch)


def _in_few_chunks(table: pa.Table) -> pa.Table:
    return table.combine_chunks() if table.nbytes <= _SMALL_BYTES else table


def _taken(column: pa.ChunkedArray, chosen: Rows) -> pa.Array:
    """The chosen values. Each chunk is used on its own: Arrow would first copy all chunks to one array."""
    if column.num_chunks <= 1:
        return one_array(column).take(pa.array(chosen))
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    order = np.argsort(chosen, kind="stable")
    sorted_rows = chosen[order]
    cuts = np.searchsorted(sorted_rows, starts)
    parts = [
        chunk.take(pa.array(sorted_rows[first:last] - start))
        for chunk, start, first, last in zip(column.chunks, starts, cuts, cuts[1:], strict=False)
        if last > first
    ]
    if not parts:
        return pa.array([], column.type)
    if np.array_equal(order, np.arange(len(order))):
        return pa.concat_arrays(parts)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(places))
