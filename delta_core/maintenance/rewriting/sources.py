"""The rows of data files as new files of the table will hold them.

Everything about a file that is not in the file itself ends here. Rows that its deletion vector names are
left out. Row ids and row commit versions that the log implies become columns (PROTOCOL.md, "Writer
Requirements for Row Tracking"). Columns that are narrower, elsewhere or missing get the place and type that
the table has for them by now.
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
from delta_core.scan.row_selection import selected_rows
from delta_core.scan.row_tracking import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    ROW_TRACKING_COLUMNS,
    FileNumbers,
    RowTrackingReader,
)
from delta_core.schema.column_mapping import ColumnMappingMode, FileColumn
from delta_core.schema.conversion import convert_chunked, floor_to_microseconds
from delta_core.schema.partition_values import parse_column
from delta_core.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A live file whose rows are written again.

    Attributes:
        path: as in the log.
        deletion_vector: names the rows that are left out.
        base_row_id, default_row_commit_version: what the log says of its rows.
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
        """What `to_json` wrote."""
        dv = document.get("deletion_vector")
        return cls(
            path=document["path"],
            deletion_vector=None if dv is None else DeletionVectorDescriptor(**dv),
            base_row_id=document.get("base_row_id"),
            default_row_commit_version=document.get("default_row_commit_version"),
        )


@dataclass(slots=True)
class _OpenFile:
    """How far a file has been read."""

    kept: npt.NDArray[np.bool_] | None
    position: int = 0


class SourceRows:
    """Turns what is read from some files into rows of new files; safe to share by threads.

    The rows of one file are to be given in order.
    """

    def __init__(
        self,
        layout: FileLayout,
        target: pa.Schema,
        files: Sequence[SourceFile],
        partition_values: Mapping[str, str | None],
    ) -> None:
        """Prepare.

        Args:
            layout: the table's.
            target: columns of `FileLayout.file_schema`, all or some, strings perhaps as dictionaries.
            files: whose rows will come.
            partition_values: of all the files, as in the log.
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
        """How the files are to be read."""
        return ReadOptions(
            dictionaries=[item.name for item in self.target if pa.types.is_dictionary(item.type)],
            columns=self._columns_in if self._narrow else None,
            opened=self._opened,
            access=self._layout.access,
        )

    def rows(self, path: str, table: pa.Table) -> pa.Table:
        """Rows of a file, the next ones, as rows of `target`.

        Raises:
            InvalidTableError: the file's types do not fit the table's, or its rows have no ids though the
                table tracks them.
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
        kept = selected_rows(metadata, range(metadata.num_row_groups), deleted=deleted, only=None, path=path)
        self._open[path] = _OpenFile(kept)

    def _ids(self, path: str, table: pa.Table, positions: npt.NDArray[np.int64]) -> dict[str, Array]:
        assert self._numbers is not None
        file = self._files[path]
        names = self._numbers.names_in_file(table.schema.names)
        found = self._numbers.arrays(
            {name: table.column(name) for name in names},
            positions,
            FileNumbers(
                base_row_id=file.base_row_id, default_row_commit_version=file.default_row_commit_version
            ),
            path,
        )
        return {name: found[kind] for name, kind in self._hidden.items()}

    def _aligned(self, table: pa.Table, hidden: Mapping[str, Array]) -> pa.Table:
        columns: list[Array] = []
        for item, (index, column) in zip(self.target, self._places(table.schema), strict=True):
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
                found = _converted(table.column(index), column.data_type)
                chunks = [column.renamed(chunk) for chunk in found.chunks]
                columns.append(pa.chunked_array(chunks, item.type))
        return pa.Table.from_arrays(columns, schema=self.target)

    def _places(self, schema: pa.Schema) -> list[tuple[int, FileColumn | None]]:
        """Where a file has each column of the target; -1 where it lacks it."""
        last = self._last
        if last is not None and last[0].equals(schema, check_metadata=True):
            return last[1]
        exactly: dict[str, int] = {}
        by_name: dict[str, int] = {}
        for index, name in enumerate(schema.names):
            exactly.setdefault(name, index)
            by_name.setdefault(name.casefold(), index)
        in_file = self._mapping.in_file(schema)
        places: list[tuple[int, FileColumn | None]] = []
        for item in self.target:
            field = self._fields.get(item.name)
            if not self._by_file_column or field is None:
                places.append((by_name.get(item.name.casefold(), -1), None))
                continue
            column = in_file.column(field)
            if column is None:
                places.append((-1, None))
                continue
            places.append((exactly[column.name], replace(column, target=item.type)))
        self._last = (schema, places)
        return places

    def _columns_in(self, schema: pa.Schema) -> list[str]:
        names = [
            schema.names[index]
            for item, (index, _) in zip(self.target, self._places(schema), strict=True)
            if index >= 0 and item.name not in self._constants and item.name not in self._hidden
        ]
        if self._numbers is not None:
            names += self._numbers.names_in_file(schema.names)
        return names


def _without_deleted(table: pa.Table, state: _OpenFile) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows that are left, and where in the file they are."""
    start = state.position
    state.position += table.num_rows
    positions = np.arange(start, state.position, dtype=np.int64)
    if state.kept is None:
        return table, positions
    kept = state.kept[start : state.position]
    return (table, positions) if kept.all() else (table.filter(pa.array(kept)), positions[kept])


def _converted(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if pa.types.is_dictionary(wanted):
        if pa.types.is_dictionary(column.type):
            return column.cast(wanted)
        return convert_chunked(column, wanted.value_type).dictionary_encode()
    # Readers see nanoseconds cut to microseconds, so that is what the row is.
    chunks = [floor_to_microseconds(chunk) for chunk in column.chunks]
    return convert_chunked(pa.chunked_array(chunks), wanted) if chunks else convert_chunked(column, wanted)


def _stored(field: StructField) -> StructField:
    """The field without what files do not hold: void within structs."""
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
