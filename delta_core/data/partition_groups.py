"""Rows of a table by partition: one group for each combination of partition values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import SchemaError
from delta_core.schema.large_arrays import row_slices
from delta_core.schema.partition_values import hive_directory, serialize
from delta_core.schema.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One combination of partition values as strings of the log, in the order of the partition columns."""

    values: tuple[tuple[str, str | None], ...] = field(default=())

    @property
    def directory(self) -> str:
        """The Hive-style directory; empty for an unpartitioned table."""
        return "/".join(hive_directory(name, value) for name, value in self.values)

    def renamed(self, names: Sequence[str]) -> Partition:
        """The same values under `names`, in the same order."""
        return Partition(
            values=tuple((name, value) for name, (_, value) in zip(names, self.values, strict=True))
        )

    def as_dict(self) -> dict[str, str | None]:
        """The values as a dictionary, for `AddFile.partition_values`."""
        return dict(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionGroups:
    """Rows in the order of their partitions.

    Attributes:
        rows: the rows; those of a partition are adjacent and in their old order.
        partitions: the partition of each group.
        bounds: the first row of each group, and the number of all rows at the end.
    """

    rows: pa.Table
    partitions: Sequence[Partition]
    bounds: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedRows:
    """Rows and the partition of each, in the order in which the partition values first appear, null last.

    Attributes:
        rows: the rows in their old order, as they are written.
        partitions: all partitions of the rows.
        codes: for each row, the index of its partition.
    """

    rows: pa.Table
    partitions: Sequence[Partition]
    codes: np.ndarray

    def split(self) -> Iterator[tuple[Partition, pa.Table]]:
        """The rows of each partition. Gathers the rows of one partition at a time."""
        if len(self.partitions) == 1:
            yield self.partitions[0], self.rows
            return
        order = np.argsort(self.codes, kind="stable")
        slices = list(row_slices(self.rows))
        bounds = self._bounds(self.codes[order])
        for index, partition in enumerate(self.partitions):
            rows = order[bounds[index] : bounds[index + 1]]
            contiguous = len(rows) == int(rows[-1]) - int(rows[0]) + 1
            part = self.rows.slice(int(rows[0]), len(rows)) if contiguous else _taken(self.rows, rows, slices)
            yield partition, part

    def grouped(self) -> PartitionGroups:
        """All rows in the order of `split`, as one table. Copies them at once, so they should be few."""
        rows, codes = self.rows, self.codes
        if np.any(codes[1:] < codes[:-1]):
            order = np.argsort(codes, kind="stable")
            codes, rows = codes[order], _taken(rows, order, list(row_slices(rows)))
        return PartitionGroups(rows=rows, partitions=self.partitions, bounds=self._bounds(codes))

    def _bounds(self, sorted_codes: np.ndarray) -> np.ndarray:
        return np.searchsorted(sorted_codes, np.arange(len(self.partitions) + 1))


def partition_rows(
    table: pa.Table, schema: StructType, partition_columns: Sequence[str], *, keep_columns: bool = False
) -> PartitionedRows:
    """Find the partition of each row; no work per row in Python. Null and the empty string are the same.

    Args:
        table: rows conformed to `schema`.
        schema: the table's schema.
        partition_columns: names as in `schema`; without partition columns there is one partition.
        keep_columns: keep the partition columns in the rows; otherwise they are removed.

    Raises:
        SchemaError: a date or time cannot be a partition value.
    """
    dropped = [] if keep_columns else list(partition_columns)
    rest = table.drop_columns(dropped) if dropped else table
    if not partition_columns:
        codes: np.ndarray = np.zeros(table.num_rows, dtype=np.int64)
        return PartitionedRows(rows=rest, partitions=[Partition()], codes=codes)
    if table.num_rows == 0:
        return PartitionedRows(rows=rest, partitions=[], codes=np.zeros(0, dtype=np.int64))
    codes, strings = _codes(table, schema, partition_columns)
    partitions = [Partition(values=tuple(zip(partition_columns, values, strict=True))) for values in strings]
    return PartitionedRows(rows=rest, partitions=partitions, codes=codes)


def _codes(
    table: pa.Table, schema: StructType, partition_columns: Sequence[str]
) -> tuple[np.ndarray, list[list[str | None]]]:
    """The partition of each row as a code, and the partition values as strings for each code."""
    codes = np.zeros(table.num_rows, dtype=np.int64)
    strings: list[list[str | None]] = []
    for name in partition_columns:
        column_codes, column_strings = _encode(table.column(name), schema, name)
        codes = codes * len(column_strings) + column_codes
        # Renumbering after each column keeps the product of cardinalities from overflowing.
        distinct, codes = np.unique(codes, return_inverse=True)
        codes = codes.astype(np.int64)
        if not strings:
            strings = [[column_strings[int(code)]] for code in distinct]
        else:
            width = len(column_strings)
            strings = [[*strings[int(code) // width], column_strings[int(code) % width]] for code in distinct]
    return codes, strings


def _taken(table: pa.Table, rows: np.ndarray, slices: Sequence[tuple[int, int]]) -> pa.Table:
    """Rows by index, in order. Each slice is taken separately, since Arrow would concatenate the chunks."""
    if len(slices) < 2:
        return table.take(pa.array(rows))
    parts = []
    for start, length in slices:
        first, end = np.searchsorted(rows, (start, start + length))
        parts.append(table.slice(start, length).take(pa.array(rows[first:end] - start)))
    return pa.concat_tables(parts)


def _encode(column: pa.ChunkedArray, schema: StructType, name: str) -> tuple[np.ndarray, list[str | None]]:
    """A code per row, and the partition value per code. Values with the same string share a code."""
    target_field = schema.find(name)
    assert target_field is not None
    # Nulls are not part of the dictionaries: Arrow cannot unify dictionaries that contain nulls.
    encoded = pc.dictionary_encode(column).unify_dictionaries()
    try:
        values = encoded.chunk(0).dictionary.to_pylist()
    except (ValueError, OverflowError) as error:
        raise SchemaError(
            f"Column {name} has a value that cannot be a partition value.",
            cause=f"{error}. Dates and times must have years from 1 to 9999.",
            fix="Correct these rows, or partition by another column.",
        ) from error
    by_string: dict[str | None, int] = {}
    codes = [
        by_string.setdefault(serialize(value, target_field.data_type), len(by_string)) for value in values
    ]
    if column.null_count:
        codes.append(by_string.setdefault(None, len(by_string)))
    remap = np.array(codes)
    # For a null value, the index -1 is the last code.
    indices = np.concatenate([pc.fill_null(chunk.indices, -1).to_numpy() for chunk in encoded.chunks])
    return remap[indices], list(by_string)
