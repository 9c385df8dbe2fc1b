"""Validation of a table's column mapping (PROTOCOL.md, "Column Mapping")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_core.errors import InvalidTableError
from delta_core.schema.column_mapping import ID_KEY, NAME_KEY
from delta_core.schema.column_paths import Path, walk_fields
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import ArrayType, DataType, MapType, StructField, StructType

MAX_ID_KEY = "delta.columnMapping.maxColumnId"
NESTED_IDS_KEY = "delta.columnMapping.nested.ids"


def check_mapping(columns: TableColumns) -> None:
    """Check that a mapping is complete and consistent, before a commit that changes a mapped table.

    Raises:
        InvalidTableError: an id or a physical name is missing, an id or a physical path is used twice, or the
            highest id is not set or below the id of a column.
    """
    if not columns.is_mapped:
        return
    for path, field in walk_fields(columns.schema):
        number, name = field.metadata.get(ID_KEY), field.metadata.get(NAME_KEY)
        if not isinstance(number, int) or not isinstance(name, str) or not name:
            missing = NAME_KEY if isinstance(number, int) else ID_KEY
            raise _broken(f"Column {'.'.join(path)} has no {missing}.")
    owners: dict[int, str] = {}
    for owner, number in _all_ids(columns.schema):
        if number in owners:
            raise _broken(f"{owners[number]} and {owner} have the same id {number}.")
        owners[number] = owner
    paths: set[Path] = set()
    for physical in _physical_paths(columns.schema, ()):
        if physical in paths:
            raise _broken(f"Two columns have the physical path {'.'.join(physical)}.")
        paths.add(physical)
    if MAX_ID_KEY not in columns.configuration:
        raise _broken(f"The table property {MAX_ID_KEY} is not set.")
    highest, limit = max(owners, default=0), int(columns.configuration[MAX_ID_KEY])
    if highest > limit:
        raise _broken(f"The table property {MAX_ID_KEY} is {limit}, but a column has the id {highest}.")


def max_column_id(columns: TableColumns) -> int:
    """The highest column id ever assigned in the table; 0 when no id was assigned.

    Raises:
        InvalidTableError: the property that stores it, or an id, is not a number.
    """
    value = columns.configuration.get(MAX_ID_KEY, "0")
    try:
        configured = int(value)
    except ValueError:
        raise InvalidTableError(
            f"The table property {MAX_ID_KEY} cannot be {value!r}.",
            cause="It must be a number, the highest id of a column.",
            fix="Restore a version of the table with a valid value.",
        ) from None
    return max([configured, *(number for _, number in _all_ids(columns.schema))])


def nested_ids(field: StructField) -> Mapping[str, int]:
    """The ids of elements, keys and values in a field's arrays and maps, by path.

    Raises:
        InvalidTableError: the metadata entry is not a map of numbers.
    """
    ids = field.metadata.get(NESTED_IDS_KEY) or {}
    if not isinstance(ids, Mapping) or not all(isinstance(number, int) for number in ids.values()):
        raise _broken(f"{NESTED_IDS_KEY} of column {field.name} is not a map of ids.")
    return ids


def _all_ids(schema: StructType) -> Iterator[tuple[str, int]]:
    """All ids, each with the path of its owner for messages."""
    for path, field in walk_fields(schema):
        number = field.metadata.get(ID_KEY)
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise _broken(f"{ID_KEY} of column {'.'.join(path)} is {number!r}, not a number.")
        if number is not None:
            yield ".".join(path), number
        yield from nested_ids(field).items()


def _physical_paths(data_type: DataType, prefix: Path) -> Iterator[Path]:
    match data_type:
        case StructType():
            for field in data_type:
                path = (*prefix, str(field.metadata[NAME_KEY]).casefold())
                yield path
                yield from _physical_paths(field.data_type, path)
        case ArrayType():
            yield from _physical_paths(data_type.element_type, (*prefix, "element"))
        case MapType():
            yield from _physical_paths(data_type.key_type, (*prefix, "key"))
            yield from _physical_paths(data_type.value_type, (*prefix, "value"))


def _broken(cause: str) -> InvalidTableError:
    return InvalidTableError(
        "The table's column mapping is not valid.",
        cause=cause,
        fix="Restore a version of the table whose schema is complete.",
    )
