"""Column changes that need no rewrite of files: add, rename, drop, move, comment, nullability.

All functions are pure: they take `TableColumns` and return changed ones. They assign ids and physical names
to new columns, keep partition columns and `delta.dataSkippingStatsColumns` consistent, and preserve the
metadata of all other columns. The caller commits all three parts. `column_types` changes types.

Paths are those of `column_paths`; they enter arrays and maps by `element`, `key` and `value`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from delta_core.arguments import require_string
from delta_core.errors import ConfigurationError, SchemaEvolutionError
from delta_core.schema.column_names import drop_stats_columns, rename_stats_column
from delta_core.schema.column_paths import (
    Path,
    display_path,
    field_at,
    find_path,
    is_within,
    struct_at,
    type_at,
    update_field,
    update_struct,
)
from delta_core.schema.column_uses import ColumnUse, refuse_used, refuse_used_in_expressions
from delta_core.schema.evolution import require_still_writable
from delta_core.schema.field_metadata import (
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    GENERATION_KEY,
    INVARIANTS_KEY,
    TYPE_CHANGES_KEY,
    is_identity,
    with_metadata,
    without_metadata,
)
from delta_core.schema.mapping_assignment import MAPPING_KEYS, NewName, assign_added, random_physical_name
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import StructField, StructType

_CHANGE_DATA_NAMES = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
_ROW_TRACKING_NAMES = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


@dataclass(frozen=True, slots=True)
class First:
    """The position before all other columns of the struct."""


@dataclass(frozen=True, slots=True)
class After:
    """The position after another column of the same struct."""

    column: str


Position = First | After


def add_columns(
    columns: TableColumns,
    added: Sequence[StructField],
    *,
    parent: Sequence[str] = (),
    position: Position | None = None,
    new_name: NewName = random_physical_name,
) -> TableColumns:
    """Add columns, which are null in all existing rows. They are checked together.

    Args:
        columns: the table's columns.
        added: the new columns. Their column mapping and type change metadata are removed.
        parent: path of the enclosing struct; empty for the table itself.
        position: the position of the first column, which the others follow; None is at the end.
        new_name: generates physical names, where columns are mapped.

    Raises:
        SchemaEvolutionError: a column exists, is NOT NULL, or has a default, identity, generation
            expression or invariant, which existing rows would not satisfy; or the parent or the neighbour
            does not exist.
        SchemaError: a name is not allowed, or files cannot store a type.
    """
    schema, place = columns.schema, position
    for column in added:
        _require_addable(columns, column, (*parent, column.name))
        new = without_metadata(column, (*MAPPING_KEYS, TYPE_CHANGES_KEY, EXISTS_DEFAULT_KEY))
        schema = update_struct(schema, parent, partial(_with_new, new, place, parent))
        place = None if position is None else After(column.name)
    require_still_writable(columns.schema, schema)
    return assign_added(columns, replace(columns, schema=schema), new_name).validated(before=columns)


def _with_new(
    column: StructField, position: Position | None, parent: Sequence[str], struct: StructType
) -> StructType:
    if struct.find(column.name) is not None:
        raise SchemaEvolutionError(
            f"Column {display_path((*parent, column.name))} exists already.",
            cause="Column names match without regard to case.",
            fix="Choose another name.",
        )
    return _placed(struct.fields, column, position, parent)


def rename_column(
    columns: TableColumns, path: Sequence[str], name: str, *, uses: Iterable[ColumnUse]
) -> TableColumns:
    """Rename a column; its id, physical name and all other metadata stay.

    Args:
        columns: the table's columns.
        path: the column.
        name: its new name, without the path of its parent.
        uses: from `table_features.column_dependencies.column_uses`.

    Raises:
        SchemaEvolutionError: the table has no column mapping, the column does not exist, another column has
            the name, or something uses the column by its name.
        SchemaError: the name is not allowed.
    """
    _require_mapping(columns, "renamed")
    old = find_path(columns.schema, path)
    if name == old[-1]:
        return columns
    refuse_used_in_expressions(old, uses, "renamed")
    _refuse_reserved_name(columns, name)
    siblings = type_at(columns.schema, old[:-1])
    taken = siblings.find(name) if isinstance(siblings, StructType) else None
    if taken is not None and taken.name != old[-1]:
        raise SchemaEvolutionError(
            f"Column {display_path(old)} cannot be renamed to {name}.",
            cause=f"There is a column {taken.name}; names match without regard to case.",
            fix="Choose another name.",
        )
    renamed = old[0].casefold() if len(old) == 1 else None
    partitions = tuple(name if one.casefold() == renamed else one for one in columns.partition_columns)
    return replace(
        columns,
        schema=update_field(columns.schema, old, lambda field: replace(field, name=name)),
        partition_columns=partitions,
        configuration=rename_stats_column(columns.configuration, old, name),
    ).validated(before=columns)


def drop_columns(
    columns: TableColumns, paths: Sequence[Sequence[str]], *, uses: Iterable[ColumnUse]
) -> TableColumns:
    """Drop columns; files keep their values, which readers ignore.

    A generated column can be dropped together with its source columns.

    Args:
        columns: the table's columns.
        paths: the columns to drop. Dropping a column also drops the columns within it.
        uses: from `table_features.column_dependencies.column_uses`.

    Raises:
        SchemaEvolutionError: the table has no column mapping; a column does not exist, is a partition column,
            is used, or is the last column of the table or of a struct.
        SchemaError: only partition columns, or columns that files cannot store, would remain.
    """
    _require_mapping(columns, "dropped")
    used = tuple(uses)
    dropped = [find_path(columns.schema, path) for path in paths]
    for path in dropped:
        _require_field(columns.schema, path, "dropped")
        if len(path) == 1 and path[0].casefold() in {one.casefold() for one in columns.partition_columns}:
            raise SchemaEvolutionError(
                f"Column {display_path(path)} cannot be dropped.",
                cause="The table is partitioned by it.",
                fix="Overwrite the table with another partitioning first.",
            )
        refuse_used(path, used, dropped)
    outermost = [p for p in dict.fromkeys(dropped) if not any(p != q and is_within(p, q) for q in dropped)]
    schema = columns.schema
    for path in outermost:
        schema = update_struct(schema, path[:-1], _without(path))
    require_still_writable(columns.schema, schema)
    configuration = drop_stats_columns(columns.configuration, outermost)
    return replace(columns, schema=schema, configuration=configuration).validated(before=columns)


def move_column(columns: TableColumns, path: Sequence[str], position: Position) -> TableColumns:
    """Move a column to another position in its struct. Files need no change.

    For files written later, the order of columns changes which leading columns have statistics.

    Raises:
        SchemaEvolutionError: the column or the neighbour does not exist.
    """
    canonical = find_path(columns.schema, path)
    field = _require_field(columns.schema, canonical, "moved")
    if isinstance(position, After) and position.column.casefold() == field.name.casefold():
        return columns

    def moved(struct: StructType) -> StructType:
        others = tuple(one for one in struct if one is not field)
        return _placed(others, field, position, canonical[:-1])

    return replace(columns, schema=update_struct(columns.schema, canonical[:-1], moved))


def set_comment(columns: TableColumns, path: Sequence[str], comment: str | None) -> TableColumns:
    """Set a column's comment; None removes it.

    Raises:
        SchemaEvolutionError: the column does not exist, or is an array's element or a map's key or value.
    """

    def commented(field: StructField) -> StructField:
        if comment is None:
            return without_metadata(field, (COMMENT_KEY,))
        return with_metadata(field, {COMMENT_KEY: comment})

    return _with_field(columns, path, commented)


def drop_not_null(columns: TableColumns, path: Sequence[str]) -> TableColumns:
    """Make a column nullable.

    Raises:
        SchemaEvolutionError: the column does not exist, or is an array's element or a map's key or value.
    """
    return _with_field(columns, path, lambda field: replace(field, nullable=True))


def set_not_null(columns: TableColumns, path: Sequence[str]) -> TableColumns:
    """Make a column NOT NULL.

    The caller must check the rows: it reads the column in the whole table, as for a new CHECK constraint,
    refuses when a row has a null in it (`schema.nullability.find_null_violations` on the new schema), and
    commits so that a concurrent append conflicts. Files are not changed.

    Raises:
        SchemaEvolutionError: the column does not exist, or is an array's element or a map's key or value; or
            its default is null, which would violate NOT NULL in every row without a value.
    """

    def required(field: StructField) -> StructField:
        default = field.metadata.get(CURRENT_DEFAULT_KEY)
        if isinstance(default, str) and default.strip().lower() == "null":
            raise SchemaEvolutionError(
                f"Column {display_path(path)} cannot be NOT NULL.",
                cause="Its default is null.",
                fix="Drop or change the default first.",
            )
        return replace(field, nullable=False)

    return _with_field(columns, path, required)


def _with_field(
    columns: TableColumns, path: Sequence[str], change: Callable[[StructField], StructField]
) -> TableColumns:
    return replace(columns, schema=update_field(columns.schema, path, change))


def _placed(
    others: tuple[StructField, ...], field: StructField, position: Position | None, parent: Sequence[str]
) -> StructType:
    match position:
        case None:
            return StructType((*others, field))
        case First():
            return StructType((field, *others))
        case After(column):
            at = next((i for i, one in enumerate(others) if one.name.casefold() == column.casefold()), None)
            if at is None:
                raise SchemaEvolutionError(
                    f"Column {display_path((*parent, field.name))} cannot be placed after {column}.",
                    cause=f"The columns next to it are {', '.join(one.name for one in others)}.",
                    fix="Name one of these columns.",
                )
            return StructType((*others[: at + 1], field, *others[at + 1 :]))


def _without(path: Path) -> Callable[[StructType], StructType]:
    def dropped(struct: StructType) -> StructType:
        if len(struct.fields) == 1:
            where = f"the struct {display_path(path[:-1])}" if len(path) > 1 else "the table"
            raise SchemaEvolutionError(
                f"Column {display_path(path)} cannot be dropped.",
                cause=f"It is the only remaining column of {where}.",
                fix="Add another column first" + (", or drop the struct." if len(path) > 1 else "."),
            )
        return StructType(tuple(field for field in struct if field.name != path[-1]))

    return dropped


def _require_field(schema: StructType, path: Path, change: str) -> StructField:
    field = field_at(schema, path)
    if field is None:
        raise SchemaEvolutionError(
            f"{display_path(path)} cannot be {change}.",
            cause="It is the element of an array, or the key or value of a map, and not a column.",
            fix="Change the column that contains it.",
        )
    return field


def _require_mapping(columns: TableColumns, change: str) -> None:
    if not columns.is_mapped:
        raise SchemaEvolutionError(
            f"Columns cannot be {change}: the table has no column mapping.",
            cause="Without column mapping, columns are found in files by their names in the schema.",
            fix="Enable column mapping first: set delta.columnMapping.mode to name.",
        )


def _require_addable(columns: TableColumns, column: StructField, path: Path) -> None:
    struct_at(columns.schema, path[:-1])
    _refuse_reserved_name(columns, column.name)
    if not column.nullable:
        what, fix = "NOT NULL", "Add it as nullable."
    elif CURRENT_DEFAULT_KEY in column.metadata:
        what, fix = "a default", "Add it without the default, then set the default for later rows."
    elif is_identity(column):
        what, fix = "an identity", "Create a new table with the column, and copy the rows."
    elif GENERATION_KEY in column.metadata:
        what, fix = "a generation expression", "Create a new table with the column, and copy the rows."
    elif INVARIANTS_KEY in column.metadata:
        what, fix = "an invariant", "Add it without the invariant, then add a CHECK constraint."
    else:
        return
    raise SchemaEvolutionError(
        f"Column {display_path(path)} cannot be added with {what}.",
        cause="The column is null in existing rows.",
        fix=fix,
    )


def _refuse_reserved_name(columns: TableColumns, name: str) -> None:
    cause = None
    if columns.is_enabled("delta.enableChangeDataFeed") and name.casefold() in _CHANGE_DATA_NAMES:
        cause = "The table's change data feed has a column of that name."
    elif name and name.casefold() in {
        columns.configuration.get(key, "").casefold() for key in _ROW_TRACKING_NAMES
    }:
        cause = "The table's row tracking has a column of that name in its files."
    if cause is not None:
        raise SchemaEvolutionError(
            f"The column name {name} is reserved.", cause=cause, fix="Choose another name."
        )


def require_position(position: object) -> First | After:
    """Return the value when it is a position of a column.

    Raises:
        ConfigurationError: the value is not a position.
    """
    if isinstance(position, First):
        return position
    if isinstance(position, After):
        require_string(position.column, what="column to be after")
        return position
    raise ConfigurationError(
        f"{position!r} is not a position of a column.",
        cause=f"It is of type {type(position).__name__}.",
        fix='Pass delta_core.First() or delta_core.After("id").',
    )
