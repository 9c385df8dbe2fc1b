"""Converts the rows of old data files to the rows of new files.

The result does not depend on the log any more. Rows that a deletion vector marks as deleted are left out. Row
ids and row commit versions that only the log implies become columns (PROTOCOL.md, "Writer Requirements for
Row Tracking"). Columns with a narrower type, at another position, or missing get the current type and
position of the table's schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import DeletionVectorDescriptor
from delta_core.data.row_batch import Array
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.layout import FileLayout
from delta_core.maintenance.rewriting.reading import ReadOptions, readable
from delta_core.scan.record_batches import selected_rows
from delta_core.scan.row_tracking import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    ROW_TRACKING_COLUMNS,
    FileRowTracking,
    RowTrackingReader,
)
from delta_core.schema.column_mapping import ColumnMappingMode, FileColumn
from delta_core.schema.conversion import convert_chunked, floor_to_microseconds
from delta_core.schema.partition_values import parse_column
from delta_core.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A live file to rewrite.

    Attributes:
        path: as in the log.
        deletion_vector: marks the rows that are left out.
        base_row_id, default_row_commit_version: as in the log.
    """

    path: str
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The file as a JSON object."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, document: JsonObject) -> SourceFile:
        """The file that `to_json` wrote."""
        dv = document.get("deletion_vector")
        return cls(
            path=document["path"],
            deletion_vector=None if dv is None else DeletionVectorDescriptor(**dv),
            base_row_id=document.get("base_row_id"),
            default_row_commit_version=document.get("default_row_commit_version"),
        )


@dataclass(slots=True)
class _OpenFile:
    """The state of reading one file.

    Attributes:
        live: for each row of the file, True when the row is not deleted; None when no row is deleted.
        position: number of rows that were read.
    """

    live: npt.NDArray[np.bool_] | None
    position: int = 0


class SourceRows:
    """Converts rows of some files to rows of new files; can be shared by threads.

    The rows of one file must be passed in order.
    """

    def __init__(
        self,
        layout: FileLayout,
        target: pa.Schema,
        files: Sequence[SourceFile],
        partition_values: Mapping[str, str | None],
    ) -> None:
        """Prepare the conversion for the files of one partition.

        Args:
            layout: the table's layout.
            target: all or some columns of `FileLayout.file_schema`; strings may be dictionaries.
            files: the files to read.
            partition_values: the partition values that all files share, as in the log.
        """
        self.target = target
        self._layout = layout
        self._files = {file.path: file for file in files}
        self._mapping = layout.source.mapping
        self._by_file_column = self._mapping.mode is not ColumnMappingMode.NONE or layout.plan.has_variants
        self._fields = {name: _stored(field) for name, field in layout.source_fields().items()}
        self._constants = {
            name: parse_column(pa.array([partition_values[name]], pa.string()), self._fields[name].data_type)[
                0
            ]
            for name in layout.partition_columns
            if name in target.names and name in self._fields
        }
        tracking = layout.plan.row_tracking if layout.physical.keeps_row_ids else None
        self._hidden = {}
        if tracking is not None:
            self._hidden = {
                tracking.row_id_column: ROW_ID,
                tracking.row_commit_version_column: ROW_COMMIT_VERSION,
            }
        self._numbers = (
            RowTrackingReader(tracking, ROW_TRACKING_COLUMNS)
            if tracking is not None and self._hidden.keys() & set(target.names)
            else None
        )
        self._open: dict[str, _OpenFile] = {}
        self._narrow = (
            self._by_file_column or bool(self._hidden) or len(target) < len(layout.physical.file_schema)
        )
        self._last: tuple[pa.Schema, list[tuple[int, FileColumn | None]]] | None = None

    @property
    def options(self) -> ReadOptions:
        """The options for reading the files."""
        return ReadOptions(
            dictionaries=[item.name for item in self.target if pa.types.is_dictionary(item.type)],
            columns=self._columns_in if self._narrow else None,
            opened=self._opened,
            access=self._layout.access,
        )

    def rows(self, path: str, table: pa.Table) -> pa.Table:
        """Convert the next rows of a file to rows of `target`.

        Raises:
            InvalidTableError: the file's types do not match the table's types, or rows have no row ids
                although the table has row tracking.
        """
        with readable(path):
            state = self._open.get(path)
            positions = None
            if state is not None:
                table, positions = _without_deleted(table, state)
            hidden: Mapping[str, Array] = {}
            if self._numbers is not None and positions is not None:
                hidden = self._ids(path, table, positions)
            elif not self._by_file_column and not self._constants and table.schema.equals(self.target):
                return table
            return self._aligned(table, hidden)

    def _opened(self, path: str, metadata: pq.FileMetaData) -> None:
        dv = self._files[path].deletion_vector
        if dv is None and self._numbers is None:
            return
        deleted = None
        if dv is not None:
            layout = self._layout
            deleted = read_deletion_vector(layout.store, dv, num_rows=metadata.num_rows, access=layout.access)
        live = selected_rows(metadata, range(metadata.num_row_groups), deleted=deleted, only=None, path=path)
        self._open[path] = _OpenFile(live)

    def _ids(self, path: str, table: pa.Table, positions: npt.NDArray[np.int64]) -> dict[str, Array]:
        assert self._numbers is not None
        file = self._files[path]
        names = self._numbers.names_in_file(table.schema.names)
        arrays = self._numbers.arrays(
            {name: table.column(name) for name in names},
            positions,
            FileRowTracking(
                base_row_id=file.base_row_id, default_row_commit_version=file.default_row_commit_version
            ),
            path,
        )
        return {name: arrays[kind] for name, kind in self._hidden.items()}

    def _aligned(self, table: pa.Table, hidden: Mapping[str, Array]) -> pa.Table:
        columns: list[Array] = []
        for item, (index, column) in zip(self.target, self._positions(table.schema), strict=True):
            if item.name in hidden:
                columns.append(hidden[item.name])
            elif item.name in self._constants:
                value = pa.repeat(self._constants[item.name], table.num_rows)
                columns.append(_converted(pa.chunked_array([value]), item.type))
            elif index < 0:
                columns.append(pa.nulls(table.num_rows, item.type))
            elif column is None or pa.types.is_dictionary(item.type):
                columns.append(_converted(table.column(index), item.type))
            else:
                converted = _converted(table.column(index), column.data_type)
                chunks = [column.renamed(chunk) for chunk in converted.chunks]
                columns.append(pa.chunked_array(chunks, item.type))
        return pa.Table.from_arrays(columns, schema=self.target)

    def _positions(self, schema: pa.Schema) -> list[tuple[int, FileColumn | None]]:
        """The position of each target column in a file; -1 for columns that the file does not have."""
        last = self._last
        if last is not None and last[0].equals(schema, check_metadata=True):
            return last[1]
        exactly: dict[str, int] = {}
        by_name: dict[str, int] = {}
        for index, name in enumerate(schema.names):
            exactly.setdefault(name, index)
            by_name.setdefault(name.casefold(), index)
        in_file = self._mapping.in_file(schema)
        positions_in_file: list[tuple[int, FileColumn | None]] = []
        for item in self.target:
            field = self._fields.get(item.name)
            if not self._by_file_column or field is None:
                positions_in_file.append((by_name.get(item.name.casefold(), -1), None))
                continue
            column = in_file.column(field)
            if column is None:
                positions_in_file.append((-1, None))
                continue
            positions_in_file.append((exactly[column.name], replace(column, target=item.type)))
        self._last = (schema, positions_in_file)
        return positions_in_file

    def _columns_in(self, schema: pa.Schema) -> list[str]:
        names = [
            schema.names[index]
            for item, (index, _) in zip(self.target, self._positions(schema), strict=True)
            if index >= 0 and item.name not in self._constants and item.name not in self._hidden
        ]
        if self._numbers is not None:
            names += self._numbers.names_in_file(schema.names)
        return names


def _without_deleted(table: pa.Table, state: _OpenFile) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows that are not deleted, and their positions in the file."""
    start = state.position
    state.position += table.num_rows
    positions = np.arange(start, state.position, dtype=np.int64)
    if state.live is None:
        return table, positions
    live = state.live[start : state.position]
    return (table, positions) if live.all() else (table.filter(pa.array(live)), positions[live])


def _converted(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if column.type == target:
        return column
    if pa.types.is_dictionary(target):
        if pa.types.is_dictionary(column.type):
            return column.cast(target)
        return convert_chunked(column, target.value_type).dictionary_encode()
    # Readers truncate nanoseconds to microseconds, so the rewritten value must be truncated too.
    chunks = [floor_to_microseconds(chunk) for chunk in column.chunks]
    return convert_chunked(pa.chunked_array(chunks), target) if chunks else convert_chunked(column, target)


def _stored(field: StructField) -> StructField:
    """The field without void fields within structs, which files do not contain."""
    return replace(field, data_type=_stored_type(field.data_type))


def _stored_type(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return StructType(tuple(_stored(field) for field in data_type if field.data_type != VOID))
        case ArrayType():
            return replace(data_type, element_type=_stored_type(data_type.element_type))
        case MapType():
            return replace(
                data_type,
                key_type=_stored_type(data_type.key_type),
                value_type=_stored_type(data_type.value_type),
            )
    return data_type
