"""Changes of a table's columns that leave its files alone: add, rename, drop, move, comment, nullability.

All are pure: they take `TableColumns` and give the changed ones, with ids and physical names for what is
new, partition columns and `delta.dataSkippingStatsColumns` in step, and the metadata of every other column
untouched. The caller commits all three parts. `column_types` changes types.

Paths are those of `column_paths`; into an array or map they go by `element`, `key` and `value`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from delta_core.errors import SchemaEvolutionError
from delta_core.schema.column_names import drop_stats_columns, rename_stats_column
from delta_core.schema.column_paths import (
    Path,
    field_at,
    find_path,
    is_within,
    shown,
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
    """Before all other columns of the struct."""


@dataclass(frozen=True, slots=True)
class After:
    """Behind another column of the same struct."""

    column: str


Position = First | After


def add_column(
    columns: TableColumns,
    column: StructField,
    *,
    parent: Sequence[str] = (),
    position: Position | None = None,
    new_name: NewName = random_physical_name,
) -> TableColumns:
    """The columns with a new one, which is null in every row that there is.

    Args:
        columns: the table's.
        column: the new one. A mapping or a record of type changes that it brings along is not kept.
        parent: path of the struct that it goes into; empty for the table itself.
        position: where in the struct; None is at the end.
        new_name: gives physical names, where columns are mapped.

    Raises:
        SchemaEvolutionError: the column exists, is NOT NULL, or has a default, identity, generation
            expression or invariant, which existing rows would not satisfy; no such parent or neighbour.
        SchemaError: its name is not allowed, or files cannot hold its type.
    """
    return add_columns(columns, [column], parent=parent, position=position, new_name=new_name)


def add_columns(
    columns: TableColumns,
    added: Sequence[StructField],
    *,
    parent: Sequence[str] = (),
    position: Position | None = None,
    new_name: NewName = random_physical_name,
) -> TableColumns:
    """`add_column` of several, the first at the position and the others behind it, checked as a whole."""
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
            f"Column {shown((*parent, column.name))} exists already",
            cause="Column names are compared without case",
            fix="Choose another name",
        )
    return _placed(struct.fields, column, position, parent)


def rename_column(
    columns: TableColumns, path: Sequence[str], name: str, *, uses: Iterable[ColumnUse]
) -> TableColumns:
    """The columns with one called otherwise; its id, physical name and all other metadata stay.

    Args:
        columns: the table's.
        path: the column.
        name: its new name, without the path to it.
        uses: from `table_features.column_dependencies.column_uses`.

    Raises:
        SchemaEvolutionError: the table has no column mapping, there is no such column, another has the
            name, or something uses the column by its name.
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
            f"Column {shown(old)} cannot be called {name}",
            cause=f"There is a column {taken.name}; names are compared without case",
            fix="Choose another name",
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
    """The columns without some; files keep their values, which nobody sees any more.

    A generated column may go together with the columns that it is made from.

    Args:
        columns: the table's.
        paths: the columns to drop; one that lies within another is dropped with it.
        uses: from `table_features.column_dependencies.column_uses`.

    Raises:
        SchemaEvolutionError: the table has no column mapping; no such column; a partition column or one
            that is used; the last column of the table or of a struct.
        SchemaError: nothing but partition columns, or columns that files cannot hold, would be left.
    """
    _require_mapping(columns, "dropped")
    used = tuple(uses)
    dropped = [find_path(columns.schema, path) for path in paths]
    for path in dropped:
        _require_field(columns.schema, path, "dropped")
        if len(path) == 1 and path[0].casefold() in {one.casefold() for one in columns.partition_columns}:
            raise SchemaEvolutionError(
                f"Column {shown(path)} cannot be dropped",
                cause="The table is partitioned by it",
                fix="Overwrite the table with another partitioning first",
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
    """The columns with one in another place of its struct. Files need no change.

    Which leading columns have statistics changes with the order, for files that are written from then on.

    Raises:
        SchemaEvolutionError: no such column or neighbour.
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
    """The columns with one commented otherwise; None takes its comment away.

    Raises:
        SchemaEvolutionError: no such column, or an array's element or a map's key or value.
    """

    def commented(field: StructField) -> StructField:
        if comment is None:
            return without_metadata(field, (COMMENT_KEY,))
        return with_metadata(field, {COMMENT_KEY: comment})

    return _with_field(columns, path, commented)


def drop_not_null(columns: TableColumns, path: Sequence[str]) -> TableColumns:
    """The columns with one that may hold nulls from now on.

    Raises:
        SchemaEvolutionError: no such column, or an array's element or a map's key or value.
    """
    return _with_field(columns, path, lambda field: replace(field, nullable=True))


def set_not_null(columns: TableColumns, path: Sequence[str]) -> TableColumns:
    """The columns with one that may no longer hold nulls.

    Rows are the caller's to check: it reads the column in the whole table, as for a new CHECK constraint,
    refuses when a row has a null in it (`schema.nullability.find_null_violations` on the new schema), and
    commits so that a concurrent append conflicts. Files are not touched.

    Raises:
        SchemaEvolutionError: no such column, or an array's element or a map's key or value; a default of
            null, which every row without a value would break.
    """

    def required(field: StructField) -> StructField:
        default = field.metadata.get(CURRENT_DEFAULT_KEY)
        if isinstance(default, str) and default.strip().lower() == "null":
            raise SchemaEvolutionError(
                f"Column {shown(path)} cannot be NOT NULL",
                cause="Its default is null",
                fix="Drop or change the default first",
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
                    f"Column {shown((*parent, field.name))} cannot be placed after {column}",
                    cause=f"The columns beside it are {', '.join(one.name for one in others)}",
                    fix="Name one of these",
                )
            return StructType((*others[: at + 1], field, *others[at + 1 :]))


def _without(path: Path) -> Callable[[StructType], StructType]:
    def dropped(struct: StructType) -> StructType:
        if len(struct.fields) == 1:
            where = f"the struct {shown(path[:-1])}" if len(path) > 1 else "the table"
            raise SchemaEvolutionError(
                f"Column {shown(path)} cannot be dropped",
                cause=f"It is the only one that {where} has left",
                fix="Add another column first" + (", or drop the struct" if len(path) > 1 else ""),
            )
        return StructType(tuple(field for field in struct if field.name != path[-1]))

    return dropped


def _require_field(schema: StructType, path: Path, change: str) -> StructField:
    field = field_at(schema, path)
    if field is None:
        raise SchemaEvolutionError(
            f"{shown(path)} cannot be {change}",
            cause="It is the element of an array, or the key or value of a map, and no column",
            fix="Change the column that it is in",
        )
    return field


def _require_mapping(columns: TableColumns, change: str) -> None:
    if not columns.is_mapped:
        raise SchemaEvolutionError(
            f"Columns cannot be {change}: the table has no column mapping",
            cause="Its files find columns by the names that these have in the schema",
            fix="Enable column mapping first: set delta.columnMapping.mode to name",
        )


def _require_addable(columns: TableColumns, column: StructField, path: Path) -> None:
    struct_at(columns.schema, path[:-1])
    _refuse_reserved_name(columns, column.name)
    if not column.nullable:
        what, fix = "NOT NULL", "Add it as nullable"
    elif CURRENT_DEFAULT_KEY in column.metadata:
        what, fix = "a default", "Add it without, then set the default, which counts for rows that come later"
    elif is_identity(column):
        what, fix = "an identity", "Create a new table with the column, and copy the rows"
    elif GENERATION_KEY in column.metadata:
        what, fix = "a generation expression", "Create a new table with the column, and copy the rows"
    elif INVARIANTS_KEY in column.metadata:
        what, fix = "an invariant", "Add it without, and add a CHECK constraint once it has values"
    else:
        return
    raise SchemaEvolutionError(
        f"Column {shown(path)} cannot be added with {what}",
        cause="The rows that the table has are null in it",
        fix=fix,
    )


def _refuse_reserved_name(columns: TableColumns, name: str) -> None:
    cause = None
    if columns.is_enabled("delta.enableChangeDataFeed") and name.casefold() in _CHANGE_DATA_NAMES:
        cause = "The table's change data feed has a column of that name"
    elif name and name.casefold() in {
        columns.configuration.get(key, "").casefold() for key in _ROW_TRACKING_NAMES
    }:
        cause = "The table's row tracking has a column of that name in its files"
    if cause is not None:
        raise SchemaEvolutionError(f"No column can be called {name}", cause=cause, fix="Choose another name")
