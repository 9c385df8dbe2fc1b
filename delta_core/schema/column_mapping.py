"""Column mapping: the names and ids of columns in data files, partition values and statistics.

PROTOCOL.md, "Column Mapping": in the modes `name` and `id` every field has a physical name and an id, which
do not change when the column is renamed. Columns in data files are found by physical name or by Parquet field
id; partition values and statistics always use the physical name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from delta_core.errors import InvalidTableError
from delta_core.schema.arrow import is_list_like, type_to_arrow
from delta_core.schema.conversion import null_mask
from delta_core.schema.types import VARIANT, ArrayType, DataType, MapType, StructField, StructType
from delta_core.variants.shredding import VARIANT_TYPE, is_shredded, reassemble, variant_in_file

MODE_KEY = "delta.columnMapping.mode"
NAME_KEY = "delta.columnMapping.physicalName"
ID_KEY = "delta.columnMapping.id"
_PARQUET_ID = b"PARQUET:field_id"


class ColumnMappingMode(StrEnum):
    """The way in which columns of data files are found."""

    NONE = "none"
    NAME = "name"
    ID = "id"


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Maps the columns of a table's schema to the columns of its files.

    Attributes:
        mode: the way in which columns are found.
        unmapped: names of additional columns that are not in the table's schema. Files have the same names.
    """

    mode: ColumnMappingMode = ColumnMappingMode.NONE
    unmapped: frozenset[str] = frozenset()

    @classmethod
    def of(cls, configuration: Mapping[str, str]) -> ColumnMapping:
        """The mapping that a table's configuration specifies.

        Raises:
            InvalidTableError: the mode does not exist.
        """
        mode = configuration.get(MODE_KEY, "none").strip().lower()
        try:
            return cls(ColumnMappingMode(mode))
        except ValueError:
            raise InvalidTableError(
                f"The table property {MODE_KEY} cannot be {mode!r}.",
                cause="The supported modes are 'none', 'name' and 'id'.",
                fix="Set the property to the mode that the table's files were written with.",
            ) from None

    def physical_name(self, field: StructField) -> str:
        """The field's name in data files, partition values and statistics.

        Raises:
            InvalidTableError: the mode requires a physical name, and the field has none.
        """
        if self.mode is ColumnMappingMode.NONE or field.name in self.unmapped:
            return field.name
        name = field.metadata.get(NAME_KEY)
        if not isinstance(name, str) or not name:
            raise _incomplete(field, NAME_KEY, self.mode)
        return name

    def field_id(self, field: StructField) -> int | None:
        """The field's id in data files, if files are searched by id; None in the other modes.

        Raises:
            InvalidTableError: the mode requires an id, and the field has none.
        """
        if self.mode is not ColumnMappingMode.ID or field.name in self.unmapped:
            return None
        number = field.metadata.get(ID_KEY)
        if not isinstance(number, int):
            raise _incomplete(field, ID_KEY, self.mode)
        return number

    def physical_path(self, path: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
        """A column's path by physical names; `path` is canonical, as returned by `find_column`."""
        if self.mode is ColumnMappingMode.NONE:
            return path
        names: list[str] = []
        current: DataType = schema
        for part in path:
            assert isinstance(current, StructType)
            field = current.find(part)
            assert field is not None
            names.append(self.physical_name(field))
            current = field.data_type
        return tuple(names)

    def in_file(self, file_schema: pa.Schema) -> FileColumns:
        """The columns of the table in one data file."""
        return FileColumns(self, file_schema)

    def file_column(self, field: StructField, file_schema: pa.Schema) -> FileColumn | None:
        """One column of the table in a data file; for several columns call `in_file` once.

        Raises: as `FileColumns.column`.
        """
        return self.in_file(file_schema).column(field)

    def find(self, field: StructField, candidates: Candidates) -> pa.Field | None:
        """The candidate that corresponds to the table's field; None when no candidate does.

        Raises:
            InvalidTableError: the field lacks the name or id that the mode requires.
        """
        number = self.field_id(field)
        if number is not None:
            return candidates.by_id.get(number)
        return candidates.by_name.get(self.physical_name(field).casefold())

    def type_in_file(self, data_type: DataType, file_type: pa.DataType) -> pa.DataType:
        """The table's type with the names of the file's type at each level.

        Raises: as `FileColumns.column`.
        """
        if isinstance(data_type, StructType) and pa.types.is_struct(file_type):
            candidates = Candidates.of(file_type.fields)
            fields, taken = [], set(candidates.by_name)
            for field in data_type:
                item = self.find(field, candidates)
                if item is None:
                    # Choose a name that the file does not have: the field is null in all of its rows.
                    name = self.physical_name(field)
                    while name.casefold() in taken:
                        name += "_"
                    kind = type_to_arrow(field.data_type)
                else:
                    name, kind = item.name, self.type_in_file(field.data_type, item.type)
                taken.add(name.casefold())
                fields.append(pa.field(name, kind, nullable=field.nullable))
            return pa.struct(fields)
        if isinstance(data_type, ArrayType) and is_list_like(file_type):
            element = self.type_in_file(data_type.element_type, file_type.value_type)
            return pa.list_(pa.field("element", element, nullable=data_type.contains_null))
        if isinstance(data_type, MapType) and pa.types.is_map(file_type):
            key = self.type_in_file(data_type.key_type, file_type.key_type)
            value = self.type_in_file(data_type.value_type, file_type.item_type)
            return pa.map_(key, pa.field("value", value, nullable=data_type.value_contains_null))
        if data_type == VARIANT:
            return variant_in_file(file_type)
        return type_to_arrow(data_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """A column of the table in one data file.

    Attributes:
        name: the column's name in the file.
        data_type: the table's type with the file's names of nested fields, and with shredded variants.
        target: the table's type with the table's names.
    """

    name: str
    data_type: pa.DataType
    target: pa.DataType

    def renamed(self, array: pa.Array) -> pa.Array:
        """Convert an array of `data_type` to `target`: new names, the same memory except for variants.

        Raises:
            MalformedVariant: a shredded variant cannot be reassembled.
        """
        return _relabelled(array, self.target)


class FileColumns:
    """The columns of a table in one data file; finding a column does not check the file's other columns."""

    def __init__(self, mapping: ColumnMapping, file_schema: pa.Schema) -> None:
        self._mapping = mapping
        self._candidates = Candidates.of(list(file_schema))
        own = [item for item in file_schema if item.name not in mapping.unmapped]
        by_id = mapping.mode is ColumnMappingMode.ID
        self._lacks_ids = by_id and bool(own) and not any(map(_has_ids, own))

    def column(self, field: StructField) -> FileColumn | None:
        """The file's column for a column of the table; None when the file lacks it.

        Names match without regard to case. In the mode `id` a file without field ids at any level is refused,
        because its names may belong to other columns (PROTOCOL.md, "Reader Requirements for Column Mapping").
        A file that only has unmapped columns is accepted.

        Raises:
            InvalidTableError: the field, or the file, lacks the name or id that the mode requires.
            MalformedVariant: the file's column for a variant is not a variant.
        """
        if self._lacks_ids and field.name not in self._mapping.unmapped:
            raise InvalidTableError(
                f"The column {field.name} cannot be found in data files.",
                cause="The table's column mapping mode is id, and the file has no field ids.",
                fix="Write the file's rows again from the source, or restore a version that does not use it.",
            )
        file_field = self._mapping.find(field, self._candidates)
        if file_field is None:
            return None
        return FileColumn(
            name=file_field.name,
            data_type=self._mapping.type_in_file(field.data_type, file_field.type),
            target=type_to_arrow(field.data_type),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The fields of one level of a file. For duplicate names and ids the first field counts.

    Attributes:
        by_name: fields by case-folded name.
        by_id: fields by Parquet field id, for fields that have an id.
    """

    by_name: Mapping[str, pa.Field]
    by_id: Mapping[int, pa.Field]

    @classmethod
    def of(cls, fields: Sequence[pa.Field]) -> Candidates:
        """Index fields by name and by id."""
        by_name: dict[str, pa.Field] = {}
        by_id: dict[int, pa.Field] = {}
        for field in fields:
            by_name.setdefault(field.name.casefold(), field)
            number = _field_id(field)
            if number is not None:
                by_id.setdefault(number, field)
        return cls(by_name=by_name, by_id=by_id)


UNMAPPED = ColumnMapping()
"""The mapping in which columns have the same names in the files as in the schema."""


def _relabelled(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Rename the fields of the array's type at each level, and reassemble shredded variants.

    `Array.view` would refuse a non-nullable child of a nullable struct.
    """
    if array.type == target:
        return array
    if target == VARIANT_TYPE and is_shredded(array.type):
        return reassemble(array)
    if pa.types.is_struct(target):
        children = zip(array.flatten(), target.fields, strict=True)
        arrays = [_relabelled(child, field.type) for child, field in children]
        return pa.StructArray.from_arrays(arrays, fields=list(target.fields), mask=null_mask(array))
    if pa.types.is_map(target):
        entries = pa.StructArray.from_arrays(
            [_relabelled(array.keys, target.key_type), _relabelled(array.items, target.item_type)],
            fields=[target.key_field, target.item_field],
        )
    else:
        entries = _relabelled(array.values, target.value_type)
    # `keys`, `items` and `values` ignore the array's offset, as the buffers do.
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )


def _field_id(item: pa.Field) -> int | None:
    number = (item.metadata or {}).get(_PARQUET_ID)
    return None if number is None else int(number)


def _has_ids(item: pa.Field) -> bool:
    if _field_id(item) is not None:
        return True
    kind = item.type
    if pa.types.is_struct(kind):
        return any(map(_has_ids, kind.fields))
    if pa.types.is_map(kind):
        return _has_ids(kind.key_field) or _has_ids(kind.item_field)
    return is_list_like(kind) and _has_ids(kind.value_field)


def _incomplete(field: StructField, key: str, mode: ColumnMappingMode) -> InvalidTableError:
    return InvalidTableError(
        f"The column {field.name} cannot be found in data files.",
        cause=f"The table's column mapping mode is {mode}, and the field has no {key}.",
        fix="Restore a version of the table whose schema is complete.",
    )
