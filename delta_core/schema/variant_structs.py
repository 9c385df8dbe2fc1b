"""Variants as structs of two binary fields, a form in which data for variant columns may be written.

PROTOCOL.md, "Variant data in Parquet": the fields are `metadata` and `value`, both binary.
"""

from __future__ import annotations

from dataclasses import replace

from delta_core.schema.types import (
    BINARY,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

VARIANT_STRUCT = StructType(
    (
        StructField(name="metadata", data_type=BINARY, nullable=False),
        StructField(name="value", data_type=BINARY, nullable=False),
    )
)
"""A variant as a struct."""


def is_variant_struct(data_type: DataType) -> bool:
    """Whether the type is a struct with exactly the two binary fields of a variant."""
    return (
        isinstance(data_type, StructType)
        and sorted(field.name.casefold() for field in data_type) == ["metadata", "value"]
        and all(field.data_type == BINARY for field in data_type)
    )


def has_variants(data_type: DataType) -> bool:
    """Whether a type is a variant or contains one."""
    match data_type:
        case StructType():
            return any(has_variants(field.data_type) for field in data_type)
        case ArrayType():
            return has_variants(data_type.element_type)
        case MapType():
            return has_variants(data_type.key_type) or has_variants(data_type.value_type)
    return data_type == VARIANT


def with_variant_structs(data_type: DataType) -> DataType:
    """The type with structs in place of variants, at all levels."""
    match data_type:
        case StructType():
            return with_variant_struct_fields(data_type)
        case ArrayType():
            return replace(data_type, element_type=with_variant_structs(data_type.element_type))
        case MapType():
            return replace(
                data_type,
                key_type=with_variant_structs(data_type.key_type),
                value_type=with_variant_structs(data_type.value_type),
            )
    return VARIANT_STRUCT if data_type == VARIANT else data_type


def with_variant_struct_fields(schema: StructType) -> StructType:
    """`with_variant_structs` for a schema."""
    return StructType(
        tuple(replace(field, data_type=with_variant_structs(field.data_type)) for field in schema)
    )


def match_variants(table: StructType, data: StructType) -> StructType:
    """The data's schema, with variants and variant structs converted to what the table has in their place.

    Most data has no mark for variants, so the table's type decides. A column that the table lacks keeps the
    data's type.
    """
    matched = _matched(table, data)
    assert isinstance(matched, StructType)
    return matched


def _matched(table: DataType, data: DataType) -> DataType:
    match table, data:
        case StructType(), StructType():
            known = {field.name.casefold(): field.data_type for field in table}
            return StructType(
                tuple(
                    replace(field, data_type=_matched(known[field.name.casefold()], field.data_type))
                    if field.name.casefold() in known
                    else field
                    for field in data
                )
            )
        case ArrayType(), ArrayType():
            return replace(data, element_type=_matched(table.element_type, data.element_type))
        case MapType(), MapType():
            return replace(
                data,
                key_type=_matched(table.key_type, data.key_type),
                value_type=_matched(table.value_type, data.value_type),
            )
    if table == VARIANT and is_variant_struct(data):
        return VARIANT
    return VARIANT_STRUCT if data == VARIANT and is_variant_struct(table) else data
