"""Type changes of columns, array elements, map keys and map values (PROTOCOL.md, "Type Widening").

A type can only be widened: files keep their values, and readers convert them. A `void` column can become any
type without a table feature, since no file has a value of it (PROTOCOL.md, "Void Type").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from delta_core.errors import SchemaEvolutionError
from delta_core.schema.column_paths import Path, display_path, field_at, find_path, type_at, update_type
from delta_core.schema.column_uses import ColumnUse, refuse_used_in_expressions
from delta_core.schema.evolution import merge_schemas
from delta_core.schema.field_metadata import GENERATION_KEY, is_identity
from delta_core.schema.mapping_assignment import NewName, assign_added, random_physical_name
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.type_changes import ENABLED_KEY, may_widen, record_type_changes, type_changes
from delta_core.schema.types import VOID, ArrayType, DataType, MapType, StructType

_ICEBERG = ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")


def change_type(
    columns: TableColumns,
    path: Sequence[str],
    data_type: DataType,
    *,
    uses: Iterable[ColumnUse],
    iceberg: bool = False,
    new_name: NewName = random_physical_name,
) -> TableColumns:
    """Widen the type of a column, and record the change in its metadata.

    Args:
        columns: the table's columns.
        path: the column, or `element`, `key` or `value` within it.
        data_type: its new type.
        uses: from `table_features.column_dependencies.column_uses`.
        iceberg: whether the protocol lists a feature for Iceberg compatibility, which allows fewer changes
            even where its table property is off.
        new_name: generates physical names for the fields of a type that replaces `void`.

    Raises:
        SchemaEvolutionError: the column does not exist; writers may not make the change; type widening is not
            enabled; an expression refers to the column; or its values are computed.
    """
    canonical = find_path(columns.schema, path)
    before = type_at(columns.schema, canonical)
    if before == data_type:
        return columns
    iceberg = iceberg or any(columns.is_enabled(key) for key in _ICEBERG)
    _require_change(columns, before, data_type, display_path(canonical), iceberg=iceberg)
    _require_free(columns.schema, canonical, uses)
    schema = update_type(columns.schema, canonical, lambda _: data_type)
    schema = record_type_changes(columns.schema, schema)
    return assign_added(columns, replace(columns, schema=schema), new_name).validated(before=columns)


def merge_columns(
    columns: TableColumns,
    data: StructType,
    *,
    uses: Iterable[ColumnUse],
    iceberg: bool = False,
    new_name: NewName = random_physical_name,
) -> TableColumns:
    """Merge the schema of data into the table's columns: new columns at the end, wider types where enabled.

    Calls `evolution.merge_schemas`, assigns ids and physical names to new columns, and refuses to change the
    type of a column that an expression refers to or whose values are computed.

    Args:
        columns: the table's columns.
        data: the schema of the data.
        uses: from `table_features.column_dependencies.column_uses`.
        iceberg: as in `change_type`.
        new_name: generates physical names.

    Raises:
        SchemaEvolutionError: the type of a column differs in the data, and cannot or may not be widened.
    """
    iceberg = iceberg or any(columns.is_enabled(key) for key in _ICEBERG)
    schema = merge_schemas(columns.schema, data, widen_types=columns.is_enabled(ENABLED_KEY), iceberg=iceberg)
    used = tuple(uses)
    for change in type_changes(columns.schema, schema):
        path = (*change.path, *change.field_path)
        _require_free(columns.schema, path, used)
    return assign_added(columns, replace(columns, schema=schema), new_name).validated(before=columns)


def _require_free(schema: StructType, path: Path, uses: Iterable[ColumnUse]) -> None:
    refuse_used_in_expressions(path, uses, "given another type")
    field = field_at(schema, path)
    if field is not None and (is_identity(field) or GENERATION_KEY in field.metadata):
        raise SchemaEvolutionError(
            f"The type of column {display_path(path)} cannot change.",
            cause="Its values are computed, and have its current type.",
            fix="Create a new table with the new type, and copy the rows.",
        )


def _require_change(
    columns: TableColumns, before: DataType, after: DataType, where: str, *, iceberg: bool
) -> None:
    problem = f"The type of {where} cannot change from {before} to {after}."
    if before == VOID:
        return
    if isinstance(before, StructType | ArrayType | MapType):
        raise SchemaEvolutionError(
            problem,
            cause="The type of a struct, array or map cannot be changed as a whole.",
            fix="Change, add or drop its fields; an array's path continues with element, a map's with key or "
            "value.",
        )
    if not may_widen(before, after):
        raise SchemaEvolutionError(
            problem,
            cause="Files keep values of the old type, so only the protocol's type changes are allowed.",
            fix="Choose a wider type, or overwrite the table with schema_mode='overwrite'.",
        )
    if not may_widen(before, after, iceberg=iceberg):
        raise SchemaEvolutionError(
            problem,
            cause="Iceberg compatibility is enabled for the table, and Iceberg does not support this change.",
            fix="Choose a type that Iceberg widens to, or overwrite the table with schema_mode='overwrite'.",
        )
    if not columns.is_enabled(ENABLED_KEY):
        raise SchemaEvolutionError(
            problem,
            cause="Type widening is not enabled.",
            fix=f"Set the table property {ENABLED_KEY} to true first.",
        )
