"""Rows of data files as Arrow batches in the table's schema.

A file may be older than the schema: columns that it lacks are null, narrower types are widened, columns
are found by name or id as the table's column mapping says. Rows that a deletion vector names are left out.
Row groups whose footer rules the predicate out are not decoded. Pages with a checksum are checked
against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import InvalidTableError, MissingDataFileError, ObjectNotFoundError, SchemaError
from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_columns, referenced_names
from delta_core.expressions.evaluate import filter_rows
from delta_core.expressions.skipping import ColumnStats, StatsColumns, may_match
from delta_core.expressions.typing import find_column
from delta_core.scan.footer_statistics import footer_leaf, footer_positions
from delta_core.scan.statistics import has_bounds
from delta_core.schema.arrow import field_to_arrow, type_to_arrow
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping, ColumnMappingMode, FileColumn
from delta_core.schema.conversion import convert_array, floor_to_microseconds
from delta_core.schema.partition_values import parse_column
from delta_core.schema.types import (
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from delta_core.storage.log_store import LogStore

DEFAULT_BATCH_ROWS = 131_072

RowsOfFile = Callable[[int], Positions]
"""Gives positions of rows in a file, for the number of rows that the file has."""


def read_file(
    store: LogStore,
    path: str,
    *,
    schema: StructType,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
    partition_values: Mapping[str, str | None] | None = None,
    partition_columns: Sequence[str] = (),
    batch_rows: int = DEFAULT_BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The rows of one data file, in batches; memory is bounded by one row group.

    Only the columns asked for, and those that the predicate names, are decoded.

    Args:
        store: the table's store.
        path: relative to the table root and decoded, as `resolve_data_path` gives it.
        schema: the table's schema; the batches have its types.
        columns: columns of `schema` to return, in this order; None is all.
        predicate: resolved against `schema`; only rows for which it is true are returned.
        partition_values: the file's, as in the log.
        partition_columns: the table's partition columns, whose values are not in the file.
        batch_rows: at most so many rows per batch.

    Raises:
        MissingDataFileError: the file is not in the store.
        InvalidTableError: the file is not Parquet, or has a column that does not fit the schema.
        ExpressionError: the predicate fails on a row.
    """
    reader = FileReader(
        schema=schema,
        columns=columns,
        predicate=predicate,
        partition_columns=partition_columns,
        batch_rows=batch_rows,
    )
    return reader.read(store, path, partition_values or {})


class FileReader:
    """What to read from each of many files: worked out once, used per file, safe to share by threads."""

    def __init__(
        self,
        *,
        schema: StructType,
        columns: Sequence[str] | None = None,
        predicate: Expression | None = None,
        partition_columns: Sequence[str] = (),
        batch_rows: int = DEFAULT_BATCH_ROWS,
        mapping: ColumnMapping = UNMAPPED,
    ) -> None:
        self._mapping = mapping
        self._predicate = predicate
        self._batch_rows = batch_rows
        self._output = output_fields(schema, columns)
        needed = {field.name for field in self._output}
        if predicate is not None:
            needed |= referenced_names(predicate)
        partitions = {name.casefold() for name in partition_columns}
        wanted = [field for field in schema if field.name in needed]
        self._partition_fields = [field for field in wanted if field.name.casefold() in partitions]
        self._file_fields = [field for field in wanted if field.name.casefold() not in partitions]
        self._schema = schema
        self.arrow_schema = pa.schema([field_to_arrow(field) for field in self._output])
        """The schema of the batches."""

    def read(
        self,
        store: LogStore,
        path: str,
        partition_values: Mapping[str, str | None],
        *,
        deleted: RowsOfFile | None = None,
        only: RowsOfFile | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The matching rows of one file; see `read_file`.

        Args:
            store: the table's store.
            path: relative to the table root and decoded.
            partition_values: the file's, as in the log.
            deleted: gives the rows to leave out, asked with the file's number of rows.
            only: gives the rows to return; None is all.
        """
        try:
            source = store.open_input(path)
        except ObjectNotFoundError as error:
            raise MissingDataFileError(
                f"The data file {path} is missing",
                cause="The log lists it, but the store does not have it",
                fix="Restore the file, or repair the table so that the log no longer lists it",
            ) from error
        with source:
            try:
                file = pq.ParquetFile(
                    source, coerce_int96_timestamp_unit="us", page_checksum_verification=True
                )
                yield from self._read_open(file, path, partition_values, deleted, only)
            except (pa.ArrowException, OSError) as error:
                raise InvalidTableError(
                    f"The data file {path} cannot be read",
                    cause=str(error),
                    fix="Restore the file from a backup, or restore a version that does not use it",
                ) from error

    def _read_open(
        self,
        file: pq.ParquetFile,
        path: str,
        partition_values: Mapping[str, str | None],
        deleted: RowsOfFile | None,
        only: RowsOfFile | None,
    ) -> Iterator[pa.RecordBatch]:
        num_rows = file.metadata.num_rows
        constants = self._constants(partition_values)
        row_groups = self._row_groups(file.metadata, constants)
        kept = selected_rows(
            file.metadata,
            row_groups,
            deleted=None if deleted is None else deleted(num_rows),
            only=None if only is None else only(num_rows),
            path=path,
        )
        if not row_groups or (kept is not None and not kept.any()):
            return
        found = {f.name: self._mapping.file_column(f, file.schema_arrow) for f in self._file_fields}
        names = [column.name for column in found.values() if column is not None]
        if not names:
            rows = sum(file.metadata.row_group(group).num_rows for group in row_groups)
            rows = rows if kept is None else int(np.count_nonzero(kept))
            for start in range(0, rows, self._batch_rows):
                yield from self._finish({}, found, min(self._batch_rows, rows - start), constants, path)
            return
        start = 0
        for batch in file.iter_batches(batch_size=self._batch_rows, row_groups=row_groups, columns=names):
            rows, start = slice_of(kept, start, batch.num_rows), start + batch.num_rows
            if rows is not None:
                batch = batch.filter(rows)
            arrays = {name: batch.column(index) for index, name in enumerate(batch.schema.names)}
            yield from self._finish(arrays, found, batch.num_rows, constants, path)

    def _constants(self, partition_values: Mapping[str, str | None]) -> dict[str, pa.Scalar]:
        by_name = {name.casefold(): text for name, text in partition_values.items()}
        return {
            field.name: parse_column(
                pa.array([by_name.get(self._mapping.physical_name(field).casefold())], pa.string()),
                field.data_type,
            )[0]
            for field in self._partition_fields
        }

    def _finish(
        self,
        arrays: Mapping[str, pa.Array],
        found: Mapping[str, FileColumn | None],
        num_rows: int,
        constants: Mapping[str, pa.Scalar],
        path: str,
    ) -> Iterator[pa.RecordBatch]:
        if num_rows == 0:
            return
        columns: dict[str, pa.Array] = {}
        for field in self._file_fields:
            column = found[field.name]
            columns[field.name] = (
                pa.nulls(num_rows, type_to_arrow(field.data_type))
                if column is None
                else _aligned(arrays[column.name], column, field, path)
            )
        for name, value in constants.items():
            columns[name] = pa.repeat(value, num_rows)
        if self._predicate is not None:
            needed = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
            needed = filter_rows(self._predicate, needed)
            num_rows = needed.num_rows
            columns = dict(zip(needed.schema.names, needed.columns, strict=True))
        if num_rows:
            yield self._batch(columns, num_rows)

    def _batch(self, columns: Mapping[str, pa.Array], num_rows: int) -> pa.RecordBatch:
        if not self._output:
            # A batch without columns keeps its number of rows only this way.
            return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
        arrays = [columns[field.name] for field in self._output]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def _row_groups(self, metadata: pq.FileMetaData, constants: Mapping[str, pa.Scalar]) -> list[int]:
        """The row groups that may hold matching rows."""
        groups = list(range(metadata.num_row_groups))
        if self._predicate is None or not groups or self._mapping.mode is ColumnMappingMode.ID:
            # Footers go by name, and with ids two files may call different columns the same.
            return groups
        positions = footer_positions(metadata)
        columns_in_file = {name.casefold() for name in metadata.schema.to_arrow_schema().names}
        columns: dict[tuple[str, ...], ColumnStats] = {}
        for referenced in referenced_columns(self._predicate):
            if referenced[0] in constants:
                continue
            path, data_type = find_column(referenced, self._schema)
            in_file = self._mapping.physical_path(path, self._schema)
            if any("." in part for part in in_file) or in_file[0].casefold() not in columns_in_file:
                # Footers join names by dots, so `b` in `a` and a column `a.b` look the same.
                continue
            position = positions.get(".".join(in_file).casefold(), -1)
            if position < 0 or isinstance(data_type, StructType | ArrayType | MapType) or data_type == VOID:
                continue
            found = [footer_leaf(metadata, group, position, data_type) for group in groups]
            target = type_to_arrow(data_type)
            bounds = [
                _bound_array([getattr(leaf, side) for leaf in found], target)
                if has_bounds(data_type)
                else None
                for side in ("minimum", "maximum")
            ]
            columns[path] = ColumnStats(
                minimum=bounds[0],
                maximum=bounds[1],
                null_count=pa.array([leaf.null_count for leaf in found], pa.int64()),
            )
        partitions = pa.table({name: pa.repeat(value, len(groups)) for name, value in constants.items()})
        stats = StatsColumns(
            num_files=len(groups),
            num_records=pa.array([metadata.row_group(group).num_rows for group in groups], pa.int64()),
            columns=columns,
            partitions=partitions if constants else None,
        )
        return [int(group) for group in np.flatnonzero(may_match(self._predicate, stats))]


def output_fields(schema: StructType, columns: Sequence[str] | None) -> list[StructField]:
    """The fields of the columns asked for, by name without case, in the order asked for.

    Raises:
        SchemaError: no such column.
    """
    if columns is None:
        return list(schema.fields)
    fields = []
    for name in columns:
        field = schema.find(name)
        if field is None:
            raise SchemaError(
                f"Column {name} does not exist",
                cause=f"The table has {', '.join(schema.names)}",
                fix="Ask for columns that the table has",
            )
        fields.append(field)
    return fields


def selected_rows(
    metadata: pq.FileMetaData,
    row_groups: Sequence[int],
    *,
    deleted: Positions | None,
    only: Positions | None,
    path: str,
) -> npt.NDArray[np.bool_] | None:
    """Which of the rows of some row groups, one after the other, are wanted; None when all are.

    Raises:
        InvalidTableError: a position is beyond the file's rows.
    """
    if deleted is None and only is None:
        return None
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    total = sum(sizes)
    for positions in (deleted, only):
        if positions is not None and len(positions) and int(positions[-1]) >= total:
            raise InvalidTableError(
                f"The deletion vector of the data file {path} names row {int(positions[-1])}",
                cause=f"The file has {total} rows",
                fix="Restore the file or the vector from a backup, or restore a version before them",
            )
    kept = np.full(total, only is None)
    if only is not None:
        kept[only] = True
    if deleted is not None:
        kept[deleted] = False
    starts = np.concatenate(([0], np.cumsum(sizes)))
    parts = [kept[starts[group] : starts[group + 1]] for group in row_groups]
    return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def slice_of(kept: npt.NDArray[np.bool_] | None, start: int, count: int) -> pa.Array | None:
    """The part of a mask for some rows, as a filter; None when it keeps them all."""
    if kept is None or kept[start : start + count].all():
        return None
    return pa.array(kept[start : start + count])


def _aligned(array: pa.Array, column: FileColumn, field: StructField, path: str) -> pa.Array:
    try:
        if array.type != column.data_type:
            array = convert_array(floor_to_microseconds(array), column.data_type)
        return column.renamed(array)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidTableError(
            f"Column {field.name} of the data file {path} has type {array.type}, the table {field.data_type}",
            cause=str(error),
            fix="Restore a version whose files have the table's types, or rewrite the file",
        ) from error


def _bound_array(values: list[object], target: pa.DataType) -> pa.Array | None:
    try:
        return pa.array(values, target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # A file may hold another type than the schema; its bounds are then of no use.
        return None
