"""The source of a MERGE in Arrow. It is read once, because a second read could return different rows."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.dml.input_data import as_rows
from delta_core.errors import DeltaError, SchemaMismatchError, StorageError
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

Rows = npt.NDArray[np.int64]
"""Numbers of rows, counted from 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeSource:
    """The rows of the source, in the types of `schema`.

    Attributes:
        schema: the columns.
        table: the rows, in memory or in a mapped file.
    """

    schema: StructType
    table: pa.Table

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def rows(self, names: Sequence[str], chosen: Rows) -> Struct | None:
        """The chosen rows of some columns as one struct array; None without columns."""
        if not names:
            return None
        arrays = [_taken(self.table.column(name), chosen) for name in names]
        fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def values(self, expression: Expression, names: MergeNames) -> pa.ChunkedArray:
        """The value of an expression over the source, for every row. Evaluated in blocks."""
        columns = names.columns_of(names.source_alias, [expression])
        part = self.table.select(list(columns))
        parts: list[pa.Array] = []
        for start in range(0, self.num_rows, _BLOCK_ROWS):
            block = part.slice(start, _BLOCK_ROWS)
            arrays = [one_array(column) for column in block.columns]
            fields = [pa.field(name, array.type) for name, array in zip(columns, arrays, strict=True)]
            struct = pa.StructArray.from_arrays(arrays, fields=fields) if arrays else None
            data = names.data(block.num_rows, target=None, source=struct)
            parts.append(one_array(evaluate(expression, data)))
        if not parts:
            empty = to_arrow(self.schema).empty_table()
            struct = pa.StructArray.from_arrays(
                [one_array(empty.column(name)) for name in columns],
                fields=[pa.field(name, empty.schema.field(name).type) for name in columns],
            )
            return pa.chunked_array(
                [one_array(evaluate(expression, names.data(0, target=None, source=struct)))]
            )
        return pa.chunked_array(parts)

    def key_values(self, equality: KeyEquality, keys: pa.ChunkedArray) -> KeyValues | None:
        """The values of an equality that limit the target's files; None when they do not."""
        if not equality.prunes:
            return None
        try:
            return self._limits(equality, keys)
        except (ValueError, OverflowError):
            return None  # Python has no date or time for a value, such as one after the year 9999.

    def _limits(self, equality: KeyEquality, keys: pa.ChunkedArray) -> KeyValues:
        if self.num_rows <= FEW_ROWS or equality.lists:
            listed = pc.unique(keys).drop_null()
            if len(listed) <= MOST_LISTED:
                return KeyValues(listed=tuple(listed.to_pylist()))
        bounds = pc.min_max(keys)
        return KeyValues(low=bounds["min"].as_py(), high=bounds["max"].as_py())


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
        InputDataError: the stream failed.
        StorageError: the temporary file cannot be written.
    """
    if isinstance(rows, pa.Table):
        yield MergeSource(schema=schema, table=_in_few_chunks(conform(schema, rows)))
        return
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
            yield MergeSource(schema=schema, table=_in_few_chunks(table))
            return
        try:
            folder = tempfile.mkdtemp(prefix="deltaward-merge-")
            path = Path(folder) / "source.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, to_arrow(schema)) as writer:
                while batches:
                    writer.write_batch(batches.pop(0))
                for batch in read:
                    writer.write_batch(batch)
            mapped = pa.ipc.open_file(pa.memory_map(str(path)))
        except OSError as error:
            raise StorageError(
                "The source of the merge cannot be kept in a temporary file.",
                cause=str(error),
                fix="Free space in the directory of temporary files, or set TMPDIR to another one.",
            ) from error
        yield MergeSource(schema=schema, table=mapped.read_all())
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


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
