"""Variants as the struct of their two byte strings: what data may come as for a column of variants.

PROTOCOL.md, "Variant data in Parquet": `metadata` and `value`, both binary.
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

VARIANT_PARTS = StructType(
    (
        StructField(name="metadata", data_type=BINARY, nullable=False),
        StructField(name="value", data_type=BINARY, nullable=False),
    )
)
"""A variant, as a struct."""


def has_parts(data_type: DataType) -> bool:
    """Whether a struct has what a variant is made of, and nothing else."""
    return (
        isinstance(data_type, StructType)
        and sorted(field.name.casefold() for field in data_type) == ["metadata", "value"]
        and all(field.data_type == BINARY for field in data_type)
    )


def has_variants(data_type: DataType) -> bool:
    """Whether a type is a variant or has one in it."""
    match data_type:
        case StructType():
            return any(has_variants(field.data_type) for field in data_type)
        case ArrayType():
            return has_variants(data_type.element_type)
        case MapType():
            return has_variants(data_type.key_type) or has_variants(data_type.value_type)
    return data_type == VARIANT


def in_parts(data_type: DataType) -> DataType:
    """The type with structs in place of variants, wherever they are in it."""
    match data_type:
        case StructType():
            return schema_in_parts(data_type)
        case ArrayType():
            return replace(data_type, element_type=in_parts(data_type.element_type))
        case MapType():
            return replace(
                data_type, key_type=in_parts(data_type.key_type), value_type=in_parts(data_type.value_type)
            )
    return VARIANT_PARTS if data_type == VARIANT else data_type


def schema_in_parts(schema: StructType) -> StructType:
    """`in_parts` of a schema."""
    return StructType(tuple(replace(field, data_type=in_parts(field.data_type)) for field in schema))


def as_the_table_has_them(table: StructType, data: StructType) -> StructType:
    """The data's schema, in which a variant and its parts are each what the table has in that place.

    Most data is not marked, and the table knows; a column that the table lacks is what the data says.
    """
    found = _matched(table, data)
    assert isinstance(found, StructType)
    return found


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
    if table == VARIANT and has_parts(data):
        return VARIANT
    return VARIANT_PARTS if data == VARIANT and has_parts(table) else data
