"""Whether the column mapping of a table is sound (PROTOCOL.md, "Column Mapping")."""

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
    """Check that a mapping is complete: the last look before a commit that changes a mapped table.

    Raises:
        InvalidTableError: an id or a physical name is missing, an id or a physical path is there twice,
            or the highest id is not set or below one that a column has.
    """
    if not columns.is_mapped:
        return
    for path, field in walk_fields(columns.schema):
        number, name = field.metadata.get(ID_KEY), field.metadata.get(NAME_KEY)
        if not isinstance(number, int) or not isinstance(name, str) or not name:
            missing = NAME_KEY if isinstance(number, int) else ID_KEY
            raise _broken(f"column {'.'.join(path)} has no {missing}")
    owners: dict[int, str] = {}
    for owner, number in _all_ids(columns.schema):
        if number in owners:
            raise _broken(f"{owners[number]} and {owner} have the same id {number}")
        owners[number] = owner
    paths: set[Path] = set()
    for physical in _physical_paths(columns.schema, ()):
        if physical in paths:
            raise _broken(f"two columns have the physical path {'.'.join(physical)}")
        paths.add(physical)
    if MAX_ID_KEY not in columns.configuration:
        raise _broken(f"the table property {MAX_ID_KEY} is not set")
    highest, limit = max(owners, default=0), int(columns.configuration[MAX_ID_KEY])
    if highest > limit:
        raise _broken(f"the table property {MAX_ID_KEY} is {limit}, and there is an id {highest}")


def max_column_id(columns: TableColumns) -> int:
    """The highest id that was ever given in the table; 0 when none was.

    Raises:
        InvalidTableError: the property that keeps it is no number, or an id is none.
    """
    text = columns.configuration.get(MAX_ID_KEY, "0")
    try:
        configured = int(text)
    except ValueError:
        raise InvalidTableError(
            f"The table property {MAX_ID_KEY} is {text!r}",
            cause="It is the highest id of a column, a number",
            fix="Restore a version of the table that has it right",
        ) from None
    return max([configured, *(number for _, number in _all_ids(columns.schema))])


def nested_ids(field: StructField) -> Mapping[str, int]:
    """The ids of what is in a field's arrays and maps, by path.

    Raises:
        InvalidTableError: they are no map of numbers.
    """
    ids = field.metadata.get(NESTED_IDS_KEY) or {}
    if not isinstance(ids, Mapping) or not all(isinstance(number, int) for number in ids.values()):
        raise _broken(f"{NESTED_IDS_KEY} of column {field.name} is no map of ids")
    return ids


def _all_ids(schema: StructType) -> Iterator[tuple[str, int]]:
    """Whose id it is, for messages, and the id."""
    for path, field in walk_fields(schema):
        number = field.metadata.get(ID_KEY)
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise _broken(f"{ID_KEY} of column {'.'.join(path)} is {number!r}, not a number")
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
        "The table's column mapping is not sound",
        cause=cause,
        fix="Restore a version of the table whose schema is complete",
    )
