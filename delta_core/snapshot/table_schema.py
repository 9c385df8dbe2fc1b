"""The schema of a version, checked against the other metadata."""

from __future__ import annotations

from delta_core.actions import Metadata
from delta_core.errors import CorruptLogError, InvalidTableError, SchemaError
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import ArrayType, DataType, MapType, StructType


def table_schema(metadata: Metadata, *, where: str) -> StructType:
    """The schema that a `metaData` action holds.

    Args:
        metadata: the action.
        where: the version and the table, for messages.

    Raises:
        SchemaError: the schema string is invalid, or two columns have the same name.
        CorruptLogError: the schema is missing, or lacks a partition column.
        InvalidTableError: the column mapping mode requires names or ids that columns lack.
    """
    if not metadata.schema_string:
        raise CorruptLogError(
            f"{where} has no schema.",
            cause="Its metaData action has no schemaString.",
            fix="Read a later version.",
        )
    try:
        schema = schema_from_json(metadata.schema_string)
    except SchemaError as error:
        raise SchemaError(_located(error, where), cause=error.cause, fix=error.fix) from error
    doubled = _doubled(schema)
    if doubled is not None:
        raise SchemaError(
            f"The schema cannot be used: {where}.",
            cause=f"Two columns have the name {doubled}. Names are compared without case.",
            fix="Restore the table's metaData action from an earlier version.",
        )
    for name in metadata.partition_columns:
        field = schema.find(name)
        if field is None or isinstance(field.data_type, StructType | ArrayType | MapType):
            raise CorruptLogError(
                f"{where} cannot be read.",
                cause=f"Its metaData action lists the partition column {name!r}, and the schema has no "
                "column of that name with a primitive type.",
                fix="Restore the table's metaData action from an earlier version.",
            )
    try:
        mapping = ColumnMapping.of(metadata.configuration)
        for field in schema:
            mapping.physical_name(field)
    except InvalidTableError as error:
        raise InvalidTableError(_located(error, where), cause=error.cause, fix=error.fix) from error
    return schema


def _located(error: InvalidTableError | SchemaError, where: str) -> str:
    return f"{error.problem.rstrip('.')}: {where}."


def _doubled(data_type: DataType) -> str | None:
    """A name that two fields of one struct share, at any depth, or None."""
    if isinstance(data_type, ArrayType):
        return _doubled(data_type.element_type)
    if isinstance(data_type, MapType):
        return _doubled(data_type.key_type) or _doubled(data_type.value_type)
    if not isinstance(data_type, StructType):
        return None
    seen: set[str] = set()
    for field in data_type:
        folded = field.name.casefold()
        if folded in seen:
            return field.name
        seen.add(folded)
    return next((name for field in data_type if (name := _doubled(field.data_type)) is not None), None)
