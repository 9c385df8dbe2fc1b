"""Merging of a table's schema with that of new data, and the checks that every schema must pass."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from delta_core.errors import DeltaWarning, SchemaError, SchemaEvolutionError
from delta_core.schema.column_paths import Path, display_path, walk_fields
from delta_core.schema.enforcement import widens_losslessly
from delta_core.schema.type_changes import may_widen_implicitly, record_type_changes
from delta_core.schema.types import (
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
from delta_core.schema.variant_structs import has_variants

ILLEGAL_CHARACTERS = frozenset(" ,;{}()\n\t=")
"""Characters that a column name may contain only with column mapping, which keeps them out of the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """The changes that a merge may make to existing columns."""

    widen_nullability: bool = False
    widen_types: bool = False
    iceberg: bool = False


def merge_schemas(
    table: StructType,
    data: StructType,
    *,
    widen_nullability: bool = False,
    widen_types: bool = False,
    iceberg: bool = False,
) -> StructType:
    """Add the data's new columns to the table's schema, as nullable columns at the end, also in structs.

    Existing columns keep their name, type, position and metadata; a `void` column takes the data's type.

    Args:
        table: the table's schema.
        data: the schema of the data to be written.
        widen_nullability: also make a column nullable when the data's column is. Off by default, because
            Arrow declares every column nullable by default.
        widen_types: also widen a column to the data's type, where `type_changes.may_widen_implicitly` allows
            it, and record the change. For tables with type widening enabled. The caller refuses columns with
            uses, as `column_types.change_type` does.
        iceberg: only allow type changes that Iceberg supports.

    Raises:
        SchemaEvolutionError: a column's type differs in the data, and cannot be widened to the table's.
    """
    rules = _Rules(widen_nullability=widen_nullability, widen_types=widen_types, iceberg=iceberg)
    merged = _merge_structs(table, data, "", rules)
    return record_type_changes(table, merged) if widen_types else merged


def validate_schema(
    schema: StructType,
    partition_columns: Sequence[str] = (),
    *,
    column_mapping: bool = False,
    before: StructType | None = None,
) -> None:
    """Check the requirements for every table's schema.

    Args:
        schema: the table's schema.
        partition_columns: the table's partition columns.
        column_mapping: whether the table has column mapping, so that names may contain any character.
        before: the table's previous schema. Its names stay allowed: other engines create tables without
            column mapping whose names contain any character, and the files already have these names.

    Raises:
        SchemaError: duplicate or illegal names, variants in the keys of maps, or partition columns that are
            missing, nested, or all columns.
    """
    known = frozenset() if before is None else frozenset(path for path, _ in walk_fields(before))
    _validate_struct(schema, (), None if column_mapping else known)
    if not schema.fields:
        raise SchemaError(
            "The schema has no columns.", cause="A table needs at least one.", fix="Add a column to the data."
        )
    for name in partition_columns:
        field = schema.find(name)
        if field is None:
            raise SchemaError(
                f"Partition column {name} is not in the schema.",
                cause=f"The columns are {', '.join(schema.names)}.",
                fix="Partition by one of these columns.",
            )
        if not isinstance(field.data_type, PrimitiveType | DecimalType) or field.data_type in (VARIANT, VOID):
            raise SchemaError(
                f"Column {field.name} of type {field.data_type} cannot be a partition column.",
                cause="Partition values have primitive types.",
                fix="Partition by a column of a primitive type.",
            )
    if len({name.casefold() for name in partition_columns}) != len(partition_columns):
        raise SchemaError(
            f"The partition columns have duplicates: {', '.join(partition_columns)}.",
            cause="Names match without regard to case.",
            fix="Name each column once.",
        )
    if partition_columns and len(partition_columns) == len(schema.fields):
        raise SchemaError(
            "Every column is a partition column.",
            cause="Data files contain the columns that are not partition columns, and need at least one.",
            fix="Leave at least one column out of partition_by.",
        )


def require_writable_void(schema: StructType) -> None:
    """Check that `void` columns do not prevent writing files (PROTOCOL.md, "Void Type").

    Raises:
        SchemaError: a void inside an array or map, or a struct or table that is empty or has only void
            fields.
    """
    if _unwritable(schema):
        names = [field.name for field in schema if _unwritable(field.data_type)] or schema.names
        columns = "a void or empty column" if len(names) == 1 else "void or empty columns"
        raise SchemaError(
            f"Rows cannot be written while the schema has {columns}: {', '.join(names)}.",
            cause="Data files cannot store a void inside an array or map, a struct without fields, or a "
            "struct or table with only void fields.",
            fix="Cast the column to another type first, such as string, or add a column with a type.",
        )


def warn_of_void(before: StructType | None, after: StructType) -> None:
    """Warn about new `void` columns, which not every reader supports (PROTOCOL.md, "Void Type").

    A data frame with a column of nulls creates one unintentionally.

    Args:
        before: the table's previous schema; None for a new table.
        after: the table's new schema.
    """
    known = frozenset() if before is None else _void_columns(before)
    added = sorted(_void_columns(after) - known)
    if added:
        subject = "The columns" if len(added) > 1 else "The column"
        verb = "have" if len(added) > 1 else "has"
        warnings.warn(
            f"{subject} {', '.join(map(display_path, added))} {verb} the type void, because the data has no "
            "type: readers built on delta-kernel, such as DuckDB, cannot open the table. Give the data "
            "a type, such as string, before it is written. In an existing table, data with a type for the "
            "column gives it that type, with schema_mode='merge'.",
            DeltaWarning,
            stacklevel=3,
        )


def _void_columns(schema: StructType) -> frozenset[Path]:
    return frozenset(path for path, field in walk_fields(schema) if field.data_type == VOID)


def require_still_writable(before: StructType, after: StructType) -> None:
    """Check that a change of columns does not make the table unwritable.

    Raises:
        SchemaError: as `require_writable_void`, unless the table was unwritable before.
    """
    if not _unwritable(before):
        require_writable_void(after)


def _unwritable(data_type: DataType) -> bool:
    match data_type:
        case StructType():
            types = [field.data_type for field in data_type]
            return all(t == VOID for t in types) or any(_unwritable(t) for t in types)
        case ArrayType():
            return data_type.element_type == VOID or _unwritable(data_type.element_type)
        case MapType():
            parts = (data_type.key_type, data_type.value_type)
            return VOID in parts or any(_unwritable(part) for part in parts)
        case _:
            return False


def _merge_structs(table: StructType, data: StructType, prefix: str, rules: _Rules) -> StructType:
    new = {field.name.casefold(): field for field in data}
    if len(new) != len(data.fields):
        raise SchemaEvolutionError(
            f"The data has duplicate columns: {', '.join(data.names)}.",
            cause="Column names match without regard to case.",
            fix="Rename or drop the duplicates.",
        )
    fields = []
    for field in table:
        other = new.pop(field.name.casefold(), None)
        if other is not None:
            field = StructField(
                name=field.name,
                data_type=_merge(field.data_type, other.data_type, prefix + field.name, rules),
                nullable=field.nullable or (rules.widen_nullability and other.nullable),
                metadata=field.metadata,
            )
        fields.append(field)
    fields.extend(
        StructField(name=field.name, data_type=_all_nullable(field.data_type), metadata=field.metadata)
        for field in data
        if field.name.casefold() in new
    )
    return StructType(tuple(fields))


def _merge(table: DataType, data: DataType, path: str, rules: _Rules) -> DataType:
    match table, data:
        case StructType(), StructType():
            return _merge_structs(table, data, f"{path}.", rules)
        case ArrayType(), ArrayType():
            return ArrayType(
                element_type=_merge(table.element_type, data.element_type, f"{path}.element", rules),
                contains_null=table.contains_null or (rules.widen_nullability and data.contains_null),
            )
        case MapType(), MapType():
            return MapType(
                key_type=_merge(table.key_type, data.key_type, f"{path}.key", rules),
                value_type=_merge(table.value_type, data.value_type, f"{path}.value", rules),
                value_contains_null=table.value_contains_null
                or (rules.widen_nullability and data.value_contains_null),
            )
    if table == VOID:
        return data
    if widens_losslessly(data, table):
        return table
    if rules.widen_types and may_widen_implicitly(table, data, iceberg=rules.iceberg):
        return data
    raise SchemaEvolutionError(
        f"Column {path} has type {table} in the table and {data} in the data.",
        cause="Merging schemas adds columns; it does not change the type of an existing column.",
        fix=f"Cast the column to {table}, or overwrite the table with schema_mode='overwrite'.",
    )


def _all_nullable(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return StructType(
                tuple(
                    StructField(name=f.name, data_type=_all_nullable(f.data_type), metadata=f.metadata)
                    for f in data_type
                )
            )
        case ArrayType():
            return ArrayType(element_type=_all_nullable(data_type.element_type))
        case MapType():
            return MapType(key_type=data_type.key_type, value_type=_all_nullable(data_type.value_type))
        case _:
            return data_type


def _refuse_variant_keys(key_type: DataType, where: Path) -> None:
    if has_variants(key_type):
        raise SchemaError(
            f"Column {'.'.join(where) or '?'} has variants in the keys of a map.",
            cause="Variants cannot be compared, so they cannot be keys.",
            fix="Use keys of another type, and variants as values.",
        )


def _validate_struct(data_type: DataType, where: Path, known: frozenset[Path] | None) -> None:
    """Check names and types at all levels.

    Args:
        data_type: the column's type.
        where: the column's path.
        known: columns of the previous schema, whose names stay allowed; None allows every name.
    """
    match data_type:
        case ArrayType():
            _validate_struct(data_type.element_type, (*where, "element"), known)
        case MapType():
            _refuse_variant_keys(data_type.key_type, where)
            _validate_struct(data_type.key_type, (*where, "key"), known)
            _validate_struct(data_type.value_type, (*where, "value"), known)
        case StructType():
            seen: dict[str, str] = {}
            for field in data_type:
                path = (*where, field.name)
                if field.name.casefold() in seen:
                    raise SchemaError(
                        f"Columns {seen[field.name.casefold()]} and {'.'.join(path)} have the same name.",
                        cause="Column names must be unique regardless of case.",
                        fix="Rename one of them.",
                    )
                seen[field.name.casefold()] = ".".join(path)
                _require_name(field.name, allowed=known is None or path in known)
                _validate_struct(field.data_type, path, known)


def _require_name(name: str, *, allowed: bool) -> None:
    if not name:
        raise SchemaError(
            "The column name '' is not allowed.", cause="It is empty.", fix="Give the column a name."
        )
    illegal = sorted(set(name) & ILLEGAL_CHARACTERS)
    if illegal and not allowed:
        raise SchemaError(
            f"The column name {name!r} is not allowed.",
            cause=f"It contains {illegal}, which only a table with column mapping allows in names.",
            fix="Rename the column without the characters ' ,;{}()\\n\\t=', or enable column mapping: pass "
            "configuration={'delta.columnMapping.mode': 'name'} for a new table or a conversion, and use "
            "alter.set_properties({'delta.columnMapping.mode': 'name'}) on an existing table.",
        )
