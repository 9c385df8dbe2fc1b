"""Assignment of ids and physical names to columns (PROTOCOL.md, "Writer Requirements for Column Mapping").

Every struct field, including nested fields, has a unique id and a physical name, which never change. Ids are
counted up from `delta.columnMapping.maxColumnId`, which never decreases. Physical names are random, so the
physical path of a dropped column is never reused. Only when column mapping is enabled on a table with files
do the columns get their current names as physical names, because the files already have these names.

With Iceberg compatibility from version 2 on, array elements and map keys and values have ids as well, stored
in the metadata of the nearest enclosing field (PROTOCOL.md, "Iceberg Compatibility V2").

`mapping_modes` has the rules for changes of the mode.
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
"""The column mapping keys in a column's metadata. The last two are copies of ids that Spark creates."""

_NESTED_IDS_PROPERTIES = ("delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")
_LARGEST_ID = 2**31 - 1

NewName = Callable[[], str]


def random_physical_name() -> str:
    """A name that no column of any table has."""
    return f"col-{uuid4()}"


def assign_new(
    columns: TableColumns, mode: ColumnMappingMode, new_name: NewName = random_physical_name
) -> TableColumns:
    """Assign a mapping to the columns of a new table, or of a table without files.

    Mapping entries that the fields bring along from another table are removed.

    Args:
        columns: the definition. Its configuration may already have a mode.
        mode: `none` leaves the schema without a mapping.
        new_name: generates physical names.

    Returns:
        The schema with ids starting at 1, and the configuration with the mode and the highest id.
    """
    schema = strip_mapping(columns.schema)
    configuration = {k: v for k, v in columns.configuration.items() if k not in (MODE_KEY, MAX_ID_KEY)}
    if mode is ColumnMappingMode.NONE:
        return replace(columns, schema=schema, configuration=configuration)
    configuration[MODE_KEY] = mode.value
    fresh = replace(columns, schema=schema, configuration=configuration)
    return _assigned(fresh, 0, lambda _, __: new_name())


def assign_existing(columns: TableColumns) -> TableColumns:
    """Enable the mode `name` on a table with files: columns keep their names as physical names, and get ids.

    Files written before have the names but no ids, so the mode cannot be `id`.

    Raises:
        InvalidTableError: the schema has entries of a mapping, although its mode is `none`.
    """
    for path, field in walk_fields(columns.schema):
        if ID_KEY in field.metadata or NAME_KEY in field.metadata:
            raise InvalidTableError(
                f"Column mapping cannot be enabled: column {'.'.join(path)} has an id or a physical name.",
                cause="The entries belong to an earlier mapping, and some files may use it.",
                fix="Remove the mapping from the schema first, or copy the rows into a new table.",
            )
    configuration = {**columns.configuration, MODE_KEY: ColumnMappingMode.NAME.value}
    mapped = replace(columns, configuration=configuration)
    return _assigned(mapped, max_column_id(columns), lambda _, field: field.name)


def assign_added(
    before: TableColumns, after: TableColumns, new_name: NewName = random_physical_name
) -> TableColumns:
    """Assign a mapping to the columns that a change of the schema added.

    A field is an existing one when a field with its id and physical name was in the same struct before; it
    keeps both, even if it was renamed. Every other field is new: mapping entries that it brings along, such
    as from the table that the data was read from, are replaced. Without column mapping such entries are
    removed from all fields.

    Args:
        before: the table's columns.
        after: the columns with the changed schema; the configuration must have the same mode.
        new_name: generates physical names.

    Raises:
        InvalidTableError: the table's own mapping is not valid.
    """
    if not after.is_mapped:
        return replace(after, schema=strip_mapping(after.schema))
    _require_valid(before)
    kept = _keep_known(before.schema, after.schema)
    assert isinstance(kept, StructType)
    after = replace(after, schema=kept)
    highest = max(max_column_id(before), max_column_id(after))
    return _assigned(after, highest, lambda _, __: new_name())


def assign_overwritten(
    before: TableColumns, after: TableColumns, new_name: NewName = random_physical_name
) -> TableColumns:
    """Assign a mapping after the schema was replaced by the schema of other data.

    As in delta-spark, a column with the path and type of a previous column keeps that column's id and
    physical name, so that readers of the old schema can read the new files. A nullable column that becomes
    NOT NULL, at any level, is a new column. All other columns are new, and ids are never reused.

    Args:
        before: the table's columns.
        after: the columns with the new schema, whose own mapping entries are ignored.
        new_name: generates physical names.

    Raises:
        InvalidTableError: the table's own mapping is not valid.
    """
    if not after.is_mapped:
        return replace(after, schema=strip_mapping(after.schema))

    _require_valid(before)

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
    """Assign ids to array elements and map keys and values; existing ids stay.

    The other functions of this module call it where `delta.enableIcebergCompatV2` (or V3) is true; call it
    directly in the commit that enables the property.
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
    """The schema without column mapping entries."""
    return transform_fields(schema, lambda _, field: without_metadata(field, MAPPING_KEYS))


def _require_valid(before: TableColumns) -> None:
    """Refuse a table whose columns lack a mapping: new names would hide the values in existing files."""
    configuration = {MAX_ID_KEY: str(max_column_id(before)), **before.configuration}
    check_mapping(replace(before, configuration=configuration))


class _Counter:
    """A counter of column ids."""

    def __init__(self, highest: int) -> None:
        self.highest = highest

    def take(self) -> int:
        """The next id.

        Raises:
            SchemaError: all 32-bit ids are used.
        """
        if self.highest >= _LARGEST_ID:
            raise SchemaError(
                "The table has no column ids left.",
                cause=f"Ids have 32 bits, and {self.highest} is already assigned.",
                fix="Copy the rows into a new table.",
            )
        self.highest += 1
        return self.highest


def _assigned(
    columns: TableColumns, highest: int, name_of: Callable[[Path, StructField], str]
) -> TableColumns:
    """Assign ids and names to fields that lack them, parents first, then ids within arrays and maps."""
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
    """`after`, with the ids and physical names only of fields that `before` has in the same struct."""
    match after:
        case StructType():
            known: dict[tuple[object, object], StructField] = {}
            if isinstance(before, StructType):
                known = {_identity(field): field for field in before if NAME_KEY in field.metadata}
            fields = []
            for field in after:
                # Removed from the candidates, so that a copy of a field is a new field.
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
    """Whether the types are equal, except that parts may have become nullable."""
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
    """Paths of `element`, `key` and `value` through nested arrays and maps, up to the next struct."""
    parts: tuple[tuple[str, DataType], ...] = ()
    match data_type:
        case ArrayType():
            parts = (("element", data_type.element_type),)
        case MapType():
            parts = (("key", data_type.key_type), ("value", data_type.value_type))
    for name, inner in parts:
        yield (name,)
        yield from ((name, *path) for path in _nested_paths(inner))
