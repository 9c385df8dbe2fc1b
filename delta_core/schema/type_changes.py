"""The type changes that a writer may make, and their record (PROTOCOL.md, "Type Widening").

Readers must accept more type changes, made by other writers: see `table_features.type_widening.widens`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from delta_core.errors import SchemaError
from delta_core.schema.column_paths import Path, display_path, transform_fields, walk_fields
from delta_core.schema.field_metadata import TYPE_CHANGES_KEY, with_metadata, without_metadata
from delta_core.schema.json import type_from_name
from delta_core.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

ENABLED_KEY = "delta.enableTypeWidening"

_INTEGERS = (BYTE, SHORT, INTEGER, LONG)
# The integral digits that the protocol requires of a decimal that replaces the type.
_DIGITS: Mapping[DataType, int] = {BYTE: 10, SHORT: 10, INTEGER: 10, LONG: 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """A type change of a column, or of an element, key or value in it.

    Attributes:
        path: the path of the struct field that records it.
        field_path: `element`, `key` and `value` from the field to the changed type; empty for the field.
        before, after: the types.
    """

    path: Path
    field_path: Path = ()
    before: DataType
    after: DataType


def may_widen(before: DataType, after: DataType, *, iceberg: bool = False) -> bool:
    """Whether a writer may change a column from `before` to `after`; false for equal types.

    Args:
        before, after: the types.
        iceberg: whether the protocol lists a feature for Iceberg compatibility, so that only changes that
            Iceberg V2 supports are allowed.
    """
    if isinstance(before, DecimalType) and isinstance(after, DecimalType):
        scale = after.scale - before.scale
        fits = before != after and after.precision - before.precision >= scale >= 0
        return fits and (scale == 0 or not iceberg)
    if before in _INTEGERS and after in _INTEGERS:
        return _INTEGERS.index(before) < _INTEGERS.index(after)
    if (before, after) == (FLOAT, DOUBLE):
        return True
    if iceberg:
        return False
    if isinstance(after, DecimalType):
        return before in _DIGITS and after.precision - after.scale >= _DIGITS[before]
    return (before in (BYTE, SHORT, INTEGER) and after == DOUBLE) or (before, after) == (DATE, TIMESTAMP_NTZ)


def may_widen_implicitly(before: DataType, after: DataType, *, iceberg: bool = False) -> bool:
    """Whether merging a schema may widen a column implicitly.

    As in delta-spark, integers are not widened to floating-point numbers or decimals implicitly: a single
    unusual row could otherwise change the type of the column.
    """
    if before in _INTEGERS and after not in _INTEGERS:
        return False
    return may_widen(before, after, iceberg=iceberg)


def record_type_changes(before: StructType, after: StructType) -> StructType:
    """The changed schema, with every change of a primitive type added to the record of its column.

    Existing records are kept, and new changes are appended. Fields are matched by name, so a change that
    renames must not change types as well. A change from `void` is not recorded: it is not a type widening,
    and no file has a value of the type.
    """
    changes: dict[Path, list[TypeChange]] = {}
    for change in type_changes(before, after):
        changes.setdefault(change.path, []).append(change)

    def recorded(path: Path, field: StructField) -> StructField:
        added = changes.get(path)
        if not added:
            return field
        return with_metadata(field, {TYPE_CHANGES_KEY: [*_recorded(path, field), *map(_entry, added)]})

    return transform_fields(after, recorded) if changes else after


def type_changes(before: StructType, after: StructType) -> Iterator[TypeChange]:
    """The changes of primitive types between two schemas, except from `void`; fields match by name."""
    known = {_folded(path): field for path, field in walk_fields(before)}
    for path, field in walk_fields(after):
        old = known.get(_folded(path))
        if old is not None:
            for inner, was, becomes in _changes(old.data_type, field.data_type, ()):
                yield TypeChange(path=path, field_path=inner, before=was, after=becomes)


def recorded_type_changes(schema: StructType) -> Iterator[TypeChange]:
    """All changes that the schema records, oldest first for each column.

    For checks of features with requirements on type changes, such as Iceberg compatibility.

    Raises:
        SchemaError: a record cannot be read.
    """
    for path, field in walk_fields(schema):
        for entry in _recorded(path, field):
            yield _parsed(path, entry)


def without_type_changes(schema: StructType) -> StructType:
    """The schema without any record, once every data file has the types of the schema."""
    return transform_fields(schema, lambda _, field: without_metadata(field, (TYPE_CHANGES_KEY,)))


def _changes(before: DataType, after: DataType, path: Path) -> Iterator[tuple[Path, DataType, DataType]]:
    """The changes down to the next struct, whose fields have their own records."""
    match before, after:
        case ArrayType(), ArrayType():
            yield from _changes(before.element_type, after.element_type, (*path, "element"))
        case MapType(), MapType():
            yield from _changes(before.key_type, after.key_type, (*path, "key"))
            yield from _changes(before.value_type, after.value_type, (*path, "value"))
        case ((PrimitiveType() | DecimalType()), (PrimitiveType() | DecimalType())):
            if before not in (after, VOID):
                yield path, before, after


def _folded(path: Path) -> Path:
    return tuple(part.casefold() for part in path)


def _entry(change: TypeChange) -> dict[str, str]:
    entry = {"fromType": str(change.before), "toType": str(change.after)}
    return {**entry, "fieldPath": ".".join(change.field_path)} if change.field_path else entry


def _recorded(path: Path, field: StructField) -> list[Mapping[str, Any]]:
    entries = field.metadata.get(TYPE_CHANGES_KEY) or []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise _unreadable(path, f"{TYPE_CHANGES_KEY} is {entries!r}.")
    return entries


def _parsed(path: Path, entry: Mapping[str, Any]) -> TypeChange:
    before, after, inner = entry.get("fromType"), entry.get("toType"), entry.get("fieldPath", "")
    if not (isinstance(before, str) and isinstance(after, str) and isinstance(inner, str)):
        raise _unreadable(path, f"An entry of the record is {dict(entry)!r}.")
    return TypeChange(
        path=path,
        field_path=tuple(inner.split(".")) if inner else (),
        before=type_from_name(before),
        after=type_from_name(after),
    )


def _unreadable(path: Path, cause: str) -> SchemaError:
    return SchemaError(
        f"The record of type changes of column {display_path(path)} cannot be read.",
        cause=cause,
        fix="Restore a version of the table with a valid schema.",
    )
