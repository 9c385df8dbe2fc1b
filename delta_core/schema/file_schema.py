"""The Arrow schema of data files, with their column names and field ids.

PROTOCOL.md, "Writer Requirements for Column Mapping" and "Writer Requirements for IcebergCompatV2": columns
have physical names, and every field has its id. List elements and map keys and values have the ids of
`delta.columnMapping.nested.ids`. "Void Type": data files do not contain void columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from delta_core.errors import InvalidTableError, SchemaError
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.column_mapping import UNMAPPED, ColumnMapping, ColumnMappingMode
from delta_core.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType

_ID_KEY = "delta.columnMapping.id"
_NESTED_IDS_KEY = "delta.columnMapping.nested.ids"
_PARQUET_ID = b"PARQUET:field_id"
_HIGHEST_ID = 2**31 - 1


def file_fields(
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    materialise_partition_columns: bool = False,
) -> tuple[StructField, ...]:
    """The table's fields that a data file contains, in the file's order, by logical name.

    Args:
        schema: the table's schema.
        partition_columns: names in any case; files lack these columns, or contain them after all others.
        materialise_partition_columns: whether files contain them.
    """
    partitions = [name.casefold() for name in partition_columns]
    data = [f for f in schema if f.name.casefold() not in partitions and f.data_type != VOID]
    if materialise_partition_columns:
        data += [f for name in partitions for f in schema if f.name.casefold() == name]
    return tuple(data)


def file_schema(
    schema: StructType,
    *,
    mapping: ColumnMapping = UNMAPPED,
    partition_columns: Sequence[str] = (),
    materialise_partition_columns: bool = False,
    hidden: Sequence[str] = (),
) -> pa.Schema:
    """The Arrow schema of new data files.

    Args:
        schema: the table's schema.
        mapping: the table's column mapping. Unless its mode is `none`, every field gets its id.
        partition_columns: names in any case.
        materialise_partition_columns: whether files contain the partition columns, after all others.
        hidden: names of the columns after those: nullable 64-bit integers without an id.

    Raises:
        InvalidTableError: the mapping's mode requires names or ids that the schema lacks.
        SchemaError: a hidden column has the same name as another column of the file.
    """
    fields = [
        _physical_field(field, mapping)
        for field in file_fields(
            schema,
            partition_columns=partition_columns,
            materialise_partition_columns=materialise_partition_columns,
        )
    ]
    taken = {field.name.casefold() for field in fields}
    for name in hidden:
        if name.casefold() in taken:
            raise SchemaError(
                f"Data files cannot have two columns {name}.",
                cause="It is the name of a column of the table and of a hidden row tracking column.",
                fix="Rename the table's column.",
            )
        taken.add(name.casefold())
        fields.append(pa.field(name, pa.int64()))
    return pa.schema(fields)


def _physical_field(field: StructField, mapping: ColumnMapping) -> pa.Field:
    name = mapping.physical_name(field)
    if mapping.mode is ColumnMappingMode.NONE or field.name in mapping.unmapped:
        return pa.field(name, _physical_type(field.data_type, mapping, {}, name), nullable=field.nullable)
    nested = field.metadata.get(_NESTED_IDS_KEY) or {}
    if not isinstance(nested, Mapping):
        raise _broken(field.name, _NESTED_IDS_KEY, nested)
    ids = {key: _id(field.name, _NESTED_IDS_KEY, value) for key, value in nested.items()}
    return pa.field(
        name,
        _physical_type(field.data_type, mapping, ids, name),
        nullable=field.nullable,
        metadata=_with_id(_id(field.name, _ID_KEY, field.metadata.get(_ID_KEY))),
    )


def _physical_type(
    data_type: DataType, mapping: ColumnMapping, ids: Mapping[str, int], path: str
) -> pa.DataType:
    """The type with physical names; `path` is the key of this type in the nearest field's nested ids."""
    match data_type:
        case StructType():
            return pa.struct([_physical_field(f, mapping) for f in data_type if f.data_type != VOID])
        case ArrayType():
            at = f"{path}.element"
            element = _physical_type(data_type.element_type, mapping, ids, at)
            return pa.list_(
                pa.field("element", element, nullable=data_type.contains_null, metadata=_with_id(ids.get(at)))
            )
        case MapType():
            key_at, value_at = f"{path}.key", f"{path}.value"
            key = _physical_type(data_type.key_type, mapping, ids, key_at)
            value = _physical_type(data_type.value_type, mapping, ids, value_at)
            return pa.map_(
                pa.field("key", key, nullable=False, metadata=_with_id(ids.get(key_at))),
                pa.field(
                    "value",
                    value,
                    nullable=data_type.value_contains_null,
                    metadata=_with_id(ids.get(value_at)),
                ),
            )
        case _:
            return type_to_arrow(data_type)


def _with_id(number: int | None) -> dict[bytes, bytes] | None:
    return None if number is None else {_PARQUET_ID: str(number).encode()}


def _id(column: str, key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _HIGHEST_ID:
        raise _broken(column, key, value)
    return value


def _broken(column: str, key: str, value: object) -> InvalidTableError:
    return InvalidTableError(
        f"The column {column} cannot be written to data files.",
        cause=f"The table has column mapping, and {key} of this column is {value!r}.",
        fix="Restore a version of the table whose schema is complete.",
    )
