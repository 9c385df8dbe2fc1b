"""Conversion between Delta schemas and Arrow schemas.

`timestamp` is microseconds in UTC, and `timestamp_ntz` is microseconds without a zone. Every Arrow layout of
a type (large, view, dictionary, run-end encoded) converts to the same Delta type.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from delta_core.errors import SchemaError
from delta_core.schema.json import MAX_DEPTH, too_deep
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_core.schema.variant_structs import is_variant_struct
from delta_core.variants.shredding import VARIANT_TYPE

TIMESTAMP_ARROW = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ_ARROW = pa.timestamp("us")

_TO_ARROW: dict[PrimitiveType, pa.DataType] = {
    STRING: pa.string(),
    LONG: pa.int64(),
    INTEGER: pa.int32(),
    SHORT: pa.int16(),
    BYTE: pa.int8(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    TIMESTAMP: TIMESTAMP_ARROW,
    TIMESTAMP_NTZ: TIMESTAMP_NTZ_ARROW,
    VOID: pa.null(),
    VARIANT: VARIANT_TYPE,
}

# Unsigned types become the narrowest signed type that holds all their values, as in Spark.
_FROM_ARROW: dict[pa.DataType, DataType] = {
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.int8(): BYTE,
    pa.int16(): SHORT,
    pa.int32(): INTEGER,
    pa.int64(): LONG,
    pa.uint8(): SHORT,
    pa.uint16(): INTEGER,
    pa.uint32(): LONG,
    pa.uint64(): DecimalType(20, 0),
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.bool_(): BOOLEAN,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.null(): VOID,
}


def to_arrow(schema: StructType) -> pa.Schema:
    """The Arrow schema of a table's rows. Nullability is kept, column metadata is not."""
    return pa.schema([field_to_arrow(field) for field in schema])


def field_to_arrow(field: StructField) -> pa.Field:
    """The Arrow field for a column or struct field. Its metadata marks a variant (`is_marked`)."""
    return _field(field.name, field.data_type, nullable=field.nullable)


def type_to_arrow(data_type: DataType) -> pa.DataType:
    """The Arrow type for a Delta type."""
    match data_type:
        case PrimitiveType():
            return _TO_ARROW[data_type]
        case DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case ArrayType():
            return pa.list_(_field("element", data_type.element_type, nullable=data_type.contains_null))
        case MapType():
            return pa.map_(
                type_to_arrow(data_type.key_type),
                _field("value", data_type.value_type, nullable=data_type.value_contains_null),
            )
        case StructType():
            return pa.struct([field_to_arrow(field) for field in data_type])


def _field(name: str, data_type: DataType, *, nullable: bool) -> pa.Field:
    if data_type == VARIANT:
        return variant_field(name, nullable=nullable)
    return pa.field(name, type_to_arrow(data_type), nullable=nullable)


def from_arrow(schema: pa.Schema) -> StructType:
    """The Delta schema that holds the rows of an Arrow schema without loss.

    Raises:
        SchemaError: a column has a type that Delta does not support (time of day, duration, ...), or is
            marked as a variant but does not have the fields of a variant.
    """
    return StructType(tuple(_field_from_arrow(field, field.name, 0) for field in schema))


def type_from_arrow(data_type: pa.DataType, path: str = "") -> DataType:
    """The Delta type of an Arrow type; `path` names the column in the error.

    Raises:
        SchemaError: Delta has no such type, or it is nested too deeply.
    """
    return _type_from_arrow(data_type, path, 0)


def _type_from_arrow(data_type: pa.DataType, path: str, depth: int) -> DataType:
    if isinstance(data_type, pa.BaseExtensionType):
        # Before the dictionary lookup: extension types defined in Python are not hashable.
        return _type_from_arrow(data_type.storage_type, path, depth)
    if depth > MAX_DEPTH:
        raise too_deep()
    known = _FROM_ARROW.get(data_type)
    if known is not None:
        return known
    types = pa.types
    if types.is_timestamp(data_type):
        return TIMESTAMP if data_type.tz is not None else TIMESTAMP_NTZ
    if (
        types.is_decimal(data_type)
        and data_type.precision <= 38
        and 0 <= data_type.scale <= data_type.precision
    ):
        return DecimalType(data_type.precision, data_type.scale)
    if types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        return _type_from_arrow(data_type.value_type, path, depth)
    if types.is_fixed_size_binary(data_type):
        return BINARY
    if types.is_map(data_type):
        return MapType(
            key_type=_type_from_arrow(data_type.key_type, f"{path}.key", depth + 1),
            value_type=_type_of_field(data_type.item_field, f"{path}.value", depth + 1),
            value_contains_null=data_type.item_field.nullable,
        )
    if is_list_like(data_type):
        return ArrayType(
            element_type=_type_of_field(data_type.value_field, f"{path}.element", depth + 1),
            contains_null=data_type.value_field.nullable,
        )
    if types.is_struct(data_type):
        return StructType(
            tuple(_field_from_arrow(child, f"{path}.{child.name}", depth) for child in data_type.fields)
        )
    raise SchemaError(
        f"Column {path or '?'} has the Arrow type {data_type}, which Delta tables cannot store.",
        cause="Delta has no such type.",
        fix="Cast the column to a string, number, date or timestamp first.",
    )


def is_list_like(data_type: pa.DataType) -> bool:
    """Whether the type is any Arrow layout of a list (maps are not lists here)."""
    types = pa.types
    return bool(
        types.is_list(data_type)
        or types.is_large_list(data_type)
        or types.is_fixed_size_list(data_type)
        or types.is_list_view(data_type)
        or types.is_large_list_view(data_type)
    )


EXTENSION_NAME = "arrow.parquet.variant"
_KEY = b"ARROW:extension:name"

MARK: Mapping[bytes, bytes] = {_KEY: EXTENSION_NAME.encode()}
"""Metadata of a field that is a variant."""


def variant_field(name: str, *, nullable: bool = True) -> pa.Field:
    """An Arrow field of variants, for a table that does not have the column yet.

    Args:
        name: the name of the column or struct field; `element` in a list, `value` in a map.
        nullable: as in Arrow.
    """
    return pa.field(name, VARIANT_TYPE, nullable=nullable, metadata=dict(MARK))


def is_marked(field: pa.Field) -> bool:
    """Whether a field is marked as a variant, whatever its type is.

    The field's metadata has the name of Arrow's canonical extension type (`arrow.parquet.variant`), as for an
    unregistered extension type. Libraries pass it on without knowing the extension type.
    """
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == EXTENSION_NAME)
    return field.metadata is not None and field.metadata.get(_KEY) == MARK[_KEY]


def storage_of(field: pa.Field) -> pa.DataType:
    """The type of a field without its extension."""
    data_type = field.type
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _field_from_arrow(field: pa.Field, path: str, depth: int) -> StructField:
    kind = _type_of_field(field, path, depth + 1)
    return StructField(name=field.name, data_type=kind, nullable=field.nullable)


def _type_of_field(field: pa.Field, path: str, depth: int) -> DataType:
    if not is_marked(field):
        return _type_from_arrow(field.type, path, depth)
    stored = _type_from_arrow(storage_of(field), path, depth)
    if not is_variant_struct(stored):
        raise SchemaError(
            f"Column {path} is marked as a variant but has type {stored}.",
            cause="A variant is a struct of two binary fields, metadata and value.",
            fix="Pass unshredded variants, or remove the mark from the column's metadata.",
        )
    return VARIANT
