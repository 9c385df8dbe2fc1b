"""Rows of data files as Arrow batches in the table's schema.

A file may be older than the schema: columns that it lacks are null, narrower types are widened, and columns
are found by name or id according to the table's column mapping. Rows deleted by a deletion vector are left
out. Row groups whose footer excludes the predicate are not decoded. The checksums of pages that have one are
verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.deletion_vectors.roaring import Positions
from delta_core.deletion_vectors.row_choice import ALL_ROWS, RowChoice
from delta_core.errors import CorruptLogError, InvalidTableError, SchemaError
from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_columns, referenced_names
from delta_core.expressions.evaluate import filter_rows
from delta_core.expressions.skipping import ColumnStats, StatsColumns, may_match
from delta_core.expressions.typing import find_column
from delta_core.parquet.footer import MalformedFooter, check_data_file
from delta_core.scan.footer_statistics import footer_leaf, footer_positions
from delta_core.scan.row_tracking import FileRowTracking, RowTrackingReader
from delta_core.scan.statistics import has_bounds
from delta_core.schema.arrow import field_to_arrow, type_to_arrow
from delta_core.schema.arrow_values import arrow_array
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping, ColumnMappingMode, FileColumn
from delta_core.schema.conversion import convert_array, floor_to_microseconds, without_views
from delta_core.schema.partition_values import parse_column
from delta_core.schema.types import VOID, ArrayType, MapType, StructField, StructType
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.variants.encoding import MalformedVariant

DEFAULT_BATCH_ROWS = 131_072

RowsOfFile = Callable[[int], Positions]
"""Returns positions of rows in a file, from the file's number of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """Every row group of a file belongs to one of `count` parts; this is the part `index`, counted from 0."""

    index: int = 0
    count: int = 1

    def of(self, row_groups: Sequence[int], *, total: int) -> list[int]:
        """The row groups of this part, of a file with `total` row groups."""
        return [group for group in row_groups if group * self.count // total == self.index]


WHOLE_FILE = FilePart()
"""All row groups of a file."""

NO_NUMBERS = FileRowTracking(base_row_id=None, default_row_commit_version=None)
"""No row tracking information about a file's rows."""


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

    Only the requested columns and the columns of the predicate are decoded.

    Args:
        store: the table's store.
        path: relative to the table root and decoded, as `resolve_data_path` returns it.
        schema: the table's schema; the batches have its types.
        columns: columns of `schema` to return, in this order; None is all.
        predicate: resolved against `schema`; only rows for which it is true are returned.
        partition_values: the file's partition values, as in the log.
        partition_columns: the table's partition columns, whose values are not in the file.
        batch_rows: maximum number of rows per batch.

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
    """A reader of many files: prepared once, used for each file, and safe to share between threads."""

    def __init__(
        self,
        *,
        schema: StructType,
        columns: Sequence[str] | None = None,
        predicate: Expression | None = None,
        partition_columns: Sequence[str] = (),
        batch_rows: int = DEFAULT_BATCH_ROWS,
        mapping: ColumnMapping = UNMAPPED,
        row_tracking: RowTrackingReader | None = None,
        access: DataAccess = TABLE_ONLY,
        use_threads: bool = True,
    ) -> None:
        """Prepare the reader.

        Args:
            schema, columns, predicate, partition_columns, batch_rows: see `read_file`.
            mapping: the column names and ids in the files.
            row_tracking: the row tracking columns to add.
            access: the locations where files are allowed.
            use_threads: decode the columns of one file in parallel. A caller that reads one file per core
                should pass False: memory is then released by the thread that allocated it.
        """
        self._mapping = mapping
        self._use_threads = use_threads
        self._access = access
        self._row_tracking = row_tracking
        self._predicate = predicate
        self._batch_rows = batch_rows
        self._output = output_fields(schema, columns)
        needed = {field.name for field in self._output}
        if predicate is not None:
            needed |= referenced_names(predicate)
        partitions = {name.casefold() for name in partition_columns}
        needed_fields = [field for field in schema if field.name in needed]
        self._partition_fields = [field for field in needed_fields if field.name.casefold() in partitions]
        self._file_fields = [field for field in needed_fields if field.name.casefold() not in partitions]
        self._schema = schema
        if row_tracking is not None:
            self._output += row_tracking.fields
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
        numbers: FileRowTracking = NO_NUMBERS,
        part: FilePart = WHOLE_FILE,
    ) -> Iterator[pa.RecordBatch]:
        """The matching rows of one file; see `read_file`.

        Args:
            store: the table's store, or another store returned by `DataAccess.locate`.
            path: relative to the store's root and decoded.
            partition_values: the file's partition values, as in the log.
            deleted: returns the rows to leave out, from the file's number of rows.
            only: returns the rows to read; None reads all.
            numbers: what the log records about the file's rows, for row tracking.
            part: the part of the file to read. The parts of a file together have each row once.
        """
        with self._access.open(store, path) as source:
            try:
                # With a damaged footer Arrow may return too few rows, or terminate the process.
                check_data_file(source)
                file = pq.ParquetFile(
                    source, coerce_int96_timestamp_unit="us", page_checksum_verification=True
                )
                yield from self._read_open(file, path, partition_values, deleted, only, numbers, part)
            except (pa.ArrowException, OSError, MalformedFooter, UnicodeDecodeError) as error:
                raise InvalidTableError(
                    f"The data file {path} cannot be read.",
                    cause=str(error),
                    fix="Restore the file from a backup, or restore a version that does not use it.",
                ) from error

    def read_chosen(
        self,
        store: LogStore,
        raw_log_path: str,
        partition_values: Mapping[str, str | None],
        rows: RowChoice = ALL_ROWS,
        *,
        part: FilePart = WHOLE_FILE,
    ) -> Iterator[pa.RecordBatch]:
        """The matching rows among the chosen rows of a file, by its path in the log; see `read`.

        Args:
            store: the table's store.
            raw_log_path: the path as in the log.
            partition_values, part: see `read`.
            rows: the rows to read.

        Raises:
            PathEscapeError: the path is neither below the table's root nor below an allowed root.
        """
        access = self._access
        place = access.locate(raw_log_path, store=store)

        def listed(num_rows: int) -> Positions:
            return rows.positions(store, num_rows=num_rows, access=access)

        return self.read(
            place.store,
            place.path,
            partition_values,
            deleted=None if rows.keeps_listed or rows.chooses_all else listed,
            only=listed if rows.keeps_listed else None,
            part=part,
        )

    def _read_open(
        self,
        file: pq.ParquetFile,
        path: str,
        partition_values: Mapping[str, str | None],
        deleted: RowsOfFile | None,
        only: RowsOfFile | None,
        numbers: FileRowTracking,
        part: FilePart,
    ) -> Iterator[pa.RecordBatch]:
        num_rows = file.metadata.num_rows
        constants = self._constants(partition_values, path)
        row_groups = matching_row_groups(
            file.metadata,
            predicate=self._predicate,
            schema=self._schema,
            mapping=self._mapping,
            constants=constants,
        )
        row_groups = part.of(row_groups, total=file.metadata.num_row_groups)
        selected = selected_rows(
            file.metadata,
            row_groups,
            deleted=None if deleted is None else deleted(num_rows),
            only=None if only is None else only(num_rows),
            path=path,
        )
        if not row_groups or (selected is not None and not selected.any()):
            return
        columns = self._columns_in(file.schema_arrow, path)
        names = [column.name for column in columns.values() if column is not None]
        tracking = self._row_tracking
        if tracking is not None:
            names += tracking.names_in_file(file.schema_arrow.names)
        start, positions = 0, RowPositions(file.metadata, row_groups)
        for num_rows, arrays in self._decoded(file, row_groups, names):
            rows, where = slice_of(selected, start, num_rows), start
            start += num_rows
            if rows is not None:
                arrays = {name: without_views(array).filter(rows) for name, array in arrays.items()}
            extra: dict[str, pa.Array] = {}
            if tracking is not None:
                at = positions.slice(where, num_rows)
                at = at if rows is None else at[rows.to_numpy(zero_copy_only=False)]
                extra = tracking.arrays(arrays, at, numbers, path)
            yield from self._finish(
                arrays, columns, num_rows if rows is None else rows.true_count, constants, extra, path
            )

    def _columns_in(self, schema: pa.Schema, path: str) -> dict[str, FileColumn | None]:
        file_columns = self._mapping.in_file(schema)
        columns: dict[str, FileColumn | None] = {}
        for field in self._file_fields:
            try:
                columns[field.name] = file_columns.column(field)
            except MalformedVariant as error:
                raise _damaged_variant(field, path, error) from error
            except InvalidTableError as error:
                problem = f"{error.problem.rstrip('.')} such as {path}."
                raise InvalidTableError(problem, cause=error.cause, fix=error.fix) from error
        return columns

    def _decoded(
        self, file: pq.ParquetFile, row_groups: Sequence[int], names: Sequence[str]
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Columns of some row groups, batch by batch, with the number of rows, as there may be no columns."""
        if names:
            # Arrow prefetches all row groups of one call, so each call requests few.
            for run in runs_of_row_groups(file.metadata, row_groups, max_rows=self._batch_rows):
                for batch in file.iter_batches(
                    batch_size=self._batch_rows,
                    row_groups=run,
                    columns=list(names),
                    use_threads=self._use_threads,
                ):
                    yield batch.num_rows, dict(zip(batch.schema.names, batch.columns, strict=True))
            return
        rows = sum(file.metadata.row_group(group).num_rows for group in row_groups)
        for start in range(0, rows, self._batch_rows):
            yield min(self._batch_rows, rows - start), {}

    def _constants(self, partition_values: Mapping[str, str | None], path: str) -> dict[str, pa.Scalar]:
        by_name = {name.casefold(): value for name, value in partition_values.items()}
        try:
            return {
                field.name: parse_column(
                    pa.array([by_name.get(self._mapping.physical_name(field).casefold())], pa.string()),
                    field.data_type,
                )[0]
                for field in self._partition_fields
            }
        except CorruptLogError as error:
            where = f"{error.problem.rstrip('.')}, for the data file {path}."
            raise CorruptLogError(where, cause=error.cause, fix=error.fix) from error

    def _finish(
        self,
        arrays: Mapping[str, pa.Array],
        file_columns: Mapping[str, FileColumn | None],
        num_rows: int,
        constants: Mapping[str, pa.Scalar],
        extra: Mapping[str, pa.Array],
        path: str,
    ) -> Iterator[pa.RecordBatch]:
        if num_rows == 0:
            return
        columns: dict[str, pa.Array] = dict(extra)
        for field in self._file_fields:
            column = file_columns[field.name]
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
            # Only a struct array keeps the number of rows of a batch without columns.
            return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
        arrays = [columns[field.name] for field in self._output]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)


def output_fields(schema: StructType, columns: Sequence[str] | None) -> list[StructField]:
    """The fields of the requested columns in the requested order. Names match without regard to case.

    Raises:
        SchemaError: a column does not exist.
    """
    if columns is None:
        return list(schema.fields)
    fields = []
    for name in columns:
        field = schema.find(name)
        if field is None:
            raise SchemaError(
                f"Column {name} does not exist.",
                cause=f"The table has the columns {', '.join(schema.names)}.",
                fix="Request columns that the table has.",
            )
        fields.append(field)
    return fields


def matching_row_groups(
    metadata: pq.FileMetaData,
    *,
    predicate: Expression | None,
    schema: StructType,
    mapping: ColumnMapping,
    constants: Mapping[str, pa.Scalar],
) -> list[int]:
    """The row groups that may contain rows for which the predicate is true.

    Args:
        metadata: the file's footer.
        predicate: resolved against `schema`; None is true for every row.
        schema: the table's schema.
        mapping: the column names in the file.
        constants: columns whose value is the same in all rows, such as partition columns.
    """
    groups = list(range(metadata.num_row_groups))
    if predicate is None or not groups or mapping.mode is ColumnMappingMode.ID:
        # Footers are searched by name, and with ids the same name may mean different columns in two files.
        return groups
    positions = footer_positions(metadata)
    columns_in_file = {name.casefold() for name in metadata.schema.to_arrow_schema().names}
    columns: dict[tuple[str, ...], ColumnStats] = {}
    for referenced in referenced_columns(predicate):
        if referenced[0] in constants:
            continue
        path, data_type = find_column(referenced, schema)
        in_file = mapping.physical_path(path, schema)
        if any("." in part for part in in_file) or in_file[0].casefold() not in columns_in_file:
            # Footers join names by dots, so field `b` of struct `a` and column `a.b` have the same path.
            continue
        position = positions.get(".".join(in_file).casefold(), -1)
        if position < 0 or isinstance(data_type, StructType | ArrayType | MapType) or data_type == VOID:
            continue
        leaves = [footer_leaf(metadata, group, position, data_type) for group in groups]
        target = type_to_arrow(data_type)
        bounds = [
            _bound_array([getattr(leaf, side) for leaf in leaves], target) if has_bounds(data_type) else None
            for side in ("minimum", "maximum")
        ]
        columns[path] = ColumnStats(
            minimum=bounds[0],
            maximum=bounds[1],
            null_count=arrow_array([leaf.null_count for leaf in leaves], pa.int64()),
        )
    partitions = pa.table({name: pa.repeat(value, len(groups)) for name, value in constants.items()})
    stats = StatsColumns(
        num_files=len(groups),
        num_records=arrow_array([metadata.row_group(group).num_rows for group in groups], pa.int64()),
        columns=columns,
        partitions=partitions if constants else None,
    )
    return [int(group) for group in np.flatnonzero(may_match(predicate, stats))]


def selected_rows(
    metadata: pq.FileMetaData,
    row_groups: Sequence[int],
    *,
    deleted: Positions | None,
    only: Positions | None,
    path: str,
) -> npt.NDArray[np.bool_] | None:
    """A mask of the selected rows of some row groups in sequence; None when all are selected.

    Raises:
        InvalidTableError: a position is beyond the last row of the file.
    """
    if deleted is None and only is None:
        return None
    sizes = _row_group_sizes(metadata)
    total = sum(sizes)
    for positions in (deleted, only):
        if positions is not None and len(positions) and int(positions[-1]) >= total:
            raise InvalidTableError(
                f"The deletion vector of the data file {path} refers to row {int(positions[-1])}.",
                cause=f"The file has {total} rows.",
                fix="Restore the file or the deletion vector from a backup, or restore an earlier version.",
            )
    selected = np.full(total, only is None)
    if only is not None:
        selected[only] = True
    if deleted is not None:
        selected[deleted] = False
    starts = np.concatenate(([0], np.cumsum(sizes)))
    parts = [selected[starts[group] : starts[group + 1]] for group in row_groups]
    return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def slice_of(selected: npt.NDArray[np.bool_] | None, start: int, count: int) -> pa.Array | None:
    """The part of a mask for `count` rows, as a filter; None when it selects all of them."""
    if selected is None or selected[start : start + count].all():
        return None
    return pa.array(selected[start : start + count])


def runs_of_row_groups(
    metadata: pq.FileMetaData, row_groups: Sequence[int], *, max_rows: int
) -> Iterator[list[int]]:
    """The row groups in order, grouped so that each group has at most `max_rows` rows where possible."""
    run: list[int] = []
    rows = 0
    for group in row_groups:
        size = metadata.row_group(group).num_rows
        if run and rows + size > max_rows:
            yield run
            run, rows = [], 0
        run.append(group)
        rows += size
    if run:
        yield run


class RowPositions:
    """Maps the rows of some row groups in sequence to their positions in the file.

    Positions count every row of the file, including rows deleted by a deletion vector and rows of row groups
    that are not read.
    """

    def __init__(self, metadata: pq.FileMetaData, row_groups: Sequence[int]) -> None:
        sizes = np.array(_row_group_sizes(metadata), np.int64)
        chosen = np.array(row_groups, np.intp)
        starts_in_file = np.concatenate(([0], np.cumsum(sizes)))[chosen]
        self._ends = np.cumsum(sizes[chosen])
        self._shifts = starts_in_file - (self._ends - sizes[chosen])

    def slice(self, start: int, count: int) -> Positions:
        """The positions of `count` rows, starting with row `start` of the row groups."""
        rows: Positions = np.arange(start, start + count, dtype=np.int64)
        rows += self._shifts[np.searchsorted(self._ends, rows, side="right")]
        return rows


def _aligned(array: pa.Array, column: FileColumn, field: StructField, path: str) -> pa.Array:
    try:
        if array.type != column.data_type:
            array = convert_array(floor_to_microseconds(array), column.data_type)
        return column.renamed(array)
    except MalformedVariant as error:
        raise _damaged_variant(field, path, error) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidTableError(
            f"Column {field.name} of the data file {path} has type {array.type}, not {field.data_type}.",
            cause=str(error),
            fix="Restore a version whose files have the table's types, or rewrite the file.",
        ) from error


def _damaged_variant(field: StructField, path: str, error: MalformedVariant) -> InvalidTableError:
    return InvalidTableError(
        f"Column {field.name} of the data file {path} contains a damaged variant.",
        cause=str(error),
        fix="Restore the file from a backup, or restore a version that does not use it.",
    )


def _bound_array(values: list[object], target: pa.DataType) -> pa.Array | None:
    try:
        return arrow_array(values, target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # A file may have another type than the schema; its bounds cannot be used then.
        return None


def _row_group_sizes(metadata: pq.FileMetaData) -> list[int]:
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
