"""Conversion of schemas, columns and types in arguments, from Deltaward's or Arrow's classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa

from delta_core.errors import SchemaError
from delta_core.schema.arrow import from_arrow, type_from_arrow
from delta_core.schema.column_paths import display_path, walk_fields
from delta_core.schema.field_metadata import COMMENT_KEY
from delta_core.schema.types import DataType, StructField, StructType

FieldLike: TypeAlias = StructField | pa.Field
TypeLike: TypeAlias = DataType | pa.DataType
SchemaLike: TypeAlias = StructType | pa.Schema | Sequence[FieldLike]


def coerce_schema(schema: SchemaLike) -> StructType:
    """Convert an argument to a table's schema, from a whole schema or a list of its columns.

    Raises:
        SchemaError: the argument is not a schema, or a column has a type that Delta does not have.
    """
    if isinstance(schema, pa.Schema):
        return from_arrow(schema)
    if isinstance(schema, StructType):
        return _checked(schema)
    if isinstance(schema, list | tuple):
        return StructType(tuple(coerce_fields(schema)))
    raise _refused("schema", schema, "Pass a pyarrow schema, a StructType, or a list of columns.")


def coerce_fields(fields: Iterable[FieldLike] | FieldLike) -> list[StructField]:
    """Convert an argument of one or several columns.

    Raises:
        SchemaError: an item is not a column, or has a type that Delta does not have.
    """
    if isinstance(fields, StructField | pa.Field) or not isinstance(fields, Iterable):
        fields = [fields]
    return [_coerce_field(field) for field in fields]


def coerce_type(data_type: TypeLike) -> DataType:
    """Convert an argument to a column's type.

    Raises:
        SchemaError: the argument is not a type, or is a type that Delta does not have.
    """
    if isinstance(data_type, pa.DataType):
        return type_from_arrow(data_type)
    if isinstance(data_type, DataType):
        return data_type
    raise _refused("type", data_type, "Pass a pyarrow type, or one of delta_core.schema.types.")


def _coerce_field(field: object) -> StructField:
    if isinstance(field, pa.Field):
        return from_arrow(pa.schema([field])).fields[0]
    if isinstance(field, StructField):
        return _checked(StructType((field,))).fields[0]
    raise _refused("column", field, "Pass a pyarrow field, or a StructField.")


def _checked(schema: StructType) -> StructType:
    """Check names, nullability and comments of a caller's schema, which other readers could not open."""
    for path, field in walk_fields(schema):
        if not isinstance(field.name, str):
            raise _refused("column name", field.name, "Pass a string as the column's name.")
        comment = field.metadata.get(COMMENT_KEY)
        if not isinstance(field.nullable, bool):
            raise _refused(
                "value for nullable", field.nullable, f"Pass True or False for {display_path(path)}."
            )
        if comment is not None and not isinstance(comment, str):
            raise _refused("comment", comment, f"Pass a string as the comment of {display_path(path)}.")
    return schema


def _refused(what: str, value: object, fix: str) -> SchemaError:
    return SchemaError(
        f"{value!r} is not a valid {what}.", cause=f"It is of type {type(value).__name__}.", fix=fix
    )
