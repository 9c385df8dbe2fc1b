"""Ids and physical names for columns (PROTOCOL.md, "Writer Requirements for Column Mapping").

Every struct field, nested ones included, has a unique id and a physical name, which it keeps for as long as
it exists. Ids are counted up from `delta.columnMapping.maxColumnId`, which never falls; physical names are
drawn at random, so the physical path of a column that was dropped is never another's. Only where mapping
comes to a table that has files are the physical names those that the files have already: the columns'.

With Iceberg compatibility from version 2 on, what is in arrays and maps has ids as well, which the nearest
field above keeps (PROTOCOL.md, "Iceberg Compatibility V2").

`mapping_modes` says which changes of the mode there may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

from delta_core.errors import InvalidTableError, SchemaError
from delta_core.schema.column_mapping import ID_KEY, MODE_KEY, NAME_KEY, ColumnMappingMode
from delta_core.schema.column_paths import Path, field_at, transform_fields, walk_fields
from delta_core.schema.field_metadata import with_metadata, without_metadata
from delta_core.schema.mapping_check import (
    MAX_ID_KEY,
    NESTED_IDS_KEY,
    check_mapping,
    max_column_id,
    nested_ids,
)
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import ArrayType, DataType, MapType, StructField, StructType

MAPPING_KEYS = (ID_KEY, NAME_KEY, NESTED_IDS_KEY, "parquet.field.id", "parquet.field.nested.ids")
"""What column mapping leaves in a column's metadata. The last two are copies that Spark makes of ids."""

_NESTED_IDS_PROPERTIES = ("delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")
_LARGEST_ID = 2**31 - 1

NewName = Callable[[], str]


def random_physical_name() -> str:
    """A name that no column of any table has."""
    return f"col-{uuid4()}"


def assign_new(
    columns: TableColumns, mode: ColumnMappingMode, new_name: NewName = random_physical_name
) -> TableColumns:
    """The columns of a new table, or of one that has no files, mapped.

    Whatever mapping the fields bring along, from the table that they were taken from, is theirs no longer.

    Args:
        columns: the definition. Its configuration may have a mode already.
        mode: `none` leaves the schema without a mapping.
        new_name: gives physical names.

    Returns:
        The schema with ids from 1 on, the configuration with mode and highest id.
    """
    schema = strip_mapping(columns.schema)
    configuration = {k: v for k, v in columns.configuration.items() if k not in (MODE_KEY, MAX_ID_KEY)}
    if mode is ColumnMappingMode.NONE:
        return replace(columns, schema=schema, configuration=configuration)
    configuration[MODE_KEY] = mode.value
    fresh = replace(columns, schema=schema, configuration=configuration)
    return _assigned(fresh, 0, lambda _, __: new_name())


def assign_existing(columns: TableColumns) -> TableColumns:
    """The columns of a table with files, as the mode `name` has them: called as they are, with new ids.

    Files written before have the names and no ids, which is why the mode cannot be `id`.

    Raises:
        InvalidTableError: the schema has traces of a mapping, though its mode is `none`.
    """
    for path, field in walk_fields(columns.schema):
        if ID_KEY in field.metadata or NAME_KEY in field.metadata:
            raise InvalidTableError(
                f"Column mapping cannot be enabled: column {'.'.join(path)} has an id or a physical name",
                cause="They are of an earlier mapping, and files may be written by either",
                fix="Remove the mapping from the schema first, or copy the rows into a new table",
            )
    configuration = {**columns.configuration, MODE_KEY: ColumnMappingMode.NAME.value}
    mapped = replace(columns, configuration=configuration)
    return _assigned(mapped, max_column_id(columns), lambda _, field: field.name)


def assign_added(
    before: TableColumns, after: TableColumns, new_name: NewName = random_physical_name
) -> TableColumns:
    """The columns after a change of the schema, those that came with it mapped.

    A field is the same as before when one with its id and physical name was in the same place; it keeps
    both, whatever it is called by now. Every other is new: an entry that it brings along, such as from the
    table that the data was read from, is replaced. Without a mapping all of them lose such entries.

    Args:
        before: the table.
        after: with the changed schema; its configuration must have the same mode.
        new_name: gives physical names.

    Raises:
        InvalidTableError: the table's own mapping is not sound.
    """
    if not after.is_mapped:
        return replace(after, schema=strip_mapping(after.schema))
    _require_sound(before)
    kept = _keep_known(before.schema, after.schema)
    assert isinstance(kept, StructType)
    after = replace(after, schema=kept)
    highest = max(max_column_id(before), max_column_id(after))
    return _assigned(after, highest, lambda _, __: new_name())


def assign_overwritten(
    before: TableColumns, after: TableColumns, new_name: NewName = random_physical_name
) -> TableColumns:
    """The columns after the schema was replaced by that of other data.

    As in delta-spark, a column that has the path and the type of one before goes on as that column, with
    its id and physical name, so that readers of the old schema understand the new files. A nullable
    column that becomes NOT NULL, at any level, is another. All others are new, and ids are never reused.

    Args:
        before: the table.
        after: with the new schema, whose own mapping entries do not count.
        new_name: gives physical names.

    Raises:
        InvalidTableError: the table's own mapping is not sound.
    """
    if not after.is_mapped:
        return replace(after, schema=strip_mapping(after.schema))

    _require_sound(before)

    def continued(path: Path, field: StructField) -> StructField:
        known = _at(before.schema, path)
        field = without_metadata(field, MAPPING_KEYS)
        if known is None or not _fits(known.data_type, field.data_type):
            return field
        if known.nullable and not field.nullable:
            return field
        return with_metadata(field, {k: v for k, v in known.metadata.items() if k in MAPPING_KEYS})

    schema = transform_fields(after.schema, continued)
    return _assigned(replace(after, schema=schema), max_column_id(before), lambda _, __: new_name())


def assign_nested_ids(columns: TableColumns) -> TableColumns:
    """The same columns, with ids for all that is in arrays and maps; those that there are stay.

    The other functions here do so by themselves where `delta.enableIcebergCompatV2` (or V3) is true; this
    is for the commit that enables it.
    """
    next_id = _Counter(max_column_id(columns))

    def completed(_: Path, field: StructField) -> StructField:
        known = nested_ids(field)
        prefix = str(field.metadata.get(NAME_KEY, field.name))
        paths = [".".join((prefix, *path)) for path in _nested_paths(field.data_type)]
        if all(path in known for path in paths):
            return field
        ids = {path: known[path] if path in known else next_id.take() for path in paths}
        return with_metadata(field, {NESTED_IDS_KEY: ids})

    schema = transform_fields(columns.schema, completed)
    configuration = {**columns.configuration, MAX_ID_KEY: str(next_id.highest)}
    return replace(columns, schema=schema, configuration=configuration)


def strip_mapping(schema: StructType) -> StructType:
    """The schema without ids and physical names."""
    return transform_fields(schema, lambda _, field: without_metadata(field, MAPPING_KEYS))


def _require_sound(before: TableColumns) -> None:
    """Refuse a table whose columns lack a mapping: a new name would hide the values that files have."""
    configuration = {MAX_ID_KEY: str(max_column_id(before)), **before.configuration}
    check_mapping(replace(before, configuration=configuration))


class _Counter:
    """Ids, each one above the one before."""

    def __init__(self, highest: int) -> None:
        self.highest = highest

    def take(self) -> int:
        """The next id.

        Raises:
            SchemaError: ids have 32 bits, and all are used.
        """
        if self.highest >= _LARGEST_ID:
            raise SchemaError(
                "The table has no column ids left",
                cause=f"Ids have 32 bits, and {self.highest} was given already",
                fix="Copy the rows into a new table",
            )
        self.highest += 1
        return self.highest


def _assigned(
    columns: TableColumns, highest: int, name_of: Callable[[Path, StructField], str]
) -> TableColumns:
    """Ids and names for the fields that lack them, parents first, then ids within arrays and maps."""
    next_id = _Counter(highest)

    def completed(path: Path, field: StructField) -> StructField:
        entries: dict[str, object] = {}
        if ID_KEY not in field.metadata:
            entries[ID_KEY] = next_id.take()
        if NAME_KEY not in field.metadata:
            entries[NAME_KEY] = name_of(path, field)
        return with_metadata(field, entries) if entries else field

    schema = transform_fields(columns.schema, completed)
    configuration = {**columns.configuration, MAX_ID_KEY: str(next_id.highest)}
    mapped = replace(columns, schema=schema, configuration=configuration)
    nested = any(columns.is_enabled(key) for key in _NESTED_IDS_PROPERTIES)
    mapped = assign_nested_ids(mapped) if nested else mapped
    check_mapping(mapped)
    return mapped


def _keep_known(before: DataType | None, after: DataType) -> DataType:
    """`after`, where fields that are not in the same place of `before` have lost their mapping."""
    match after:
        case StructType():
            known: dict[tuple[object, object], StructField] = {}
            if isinstance(before, StructType):
                known = {_identity(field): field for field in before if NAME_KEY in field.metadata}
            fields = []
            for field in after:
                # Taken out, so that a copy of a field is not that field.
                same = known.pop(_identity(field), None)
                kept = field if same is not None else without_metadata(field, MAPPING_KEYS)
                inner = _keep_known(None if same is None else same.data_type, field.data_type)
                fields.append(replace(kept, data_type=inner))
            return StructType(tuple(fields))
        case ArrayType():
            element = before.element_type if isinstance(before, ArrayType) else None
            return replace(after, element_type=_keep_known(element, after.element_type))
        case MapType():
            key, value = (before.key_type, before.value_type) if isinstance(before, MapType) else (None, None)
            return replace(
                after,
                key_type=_keep_known(key, after.key_type),
                value_type=_keep_known(value, after.value_type),
            )
        case _:
            return after


def _identity(field: StructField) -> tuple[object, object]:
    return field.metadata.get(ID_KEY), field.metadata.get(NAME_KEY)


def _at(schema: StructType, path: Path) -> StructField | None:
    try:
        return field_at(schema, path)
    except SchemaError:
        return None


def _fits(before: DataType, after: DataType) -> bool:
    """Whether types are the same but for parts that may be null now and could not before."""
    match before, after:
        case StructType(), StructType():
            return len(before.fields) == len(after.fields) and all(
                old.name == new.name
                and (new.nullable or not old.nullable)
                and _fits(old.data_type, new.data_type)
                for old, new in zip(before, after, strict=True)
            )
        case ArrayType(), ArrayType():
            nulls = after.contains_null or not before.contains_null
            return nulls and _fits(before.element_type, after.element_type)
        case MapType(), MapType():
            nulls = after.value_contains_null or not before.value_contains_null
            keys = _fits(before.key_type, after.key_type)
            return nulls and keys and _fits(before.value_type, after.value_type)
        case _:
            return before == after


def _nested_paths(data_type: DataType) -> Iterator[Path]:
    """`element`, `key` and `value`, as deep as arrays and maps go without a struct between them."""
    parts: tuple[tuple[str, DataType], ...] = ()
    match data_type:
        case ArrayType():
            parts = (("element", data_type.element_type),)
        case MapType():
            parts = (("key", data_type.key_type), ("value", data_type.value_type))
    for name, inner in parts:
        yield (name,)
        yield from ((name, *path) for path in _nested_paths(inner))
