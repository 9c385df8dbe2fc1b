"""Validation of `delta.dataSkippingStatsColumns`, the list of columns that get statistics.

A name that is not a column would silently leave the table without statistics, and delta-spark does not change
the definition of a table with such a name. As in delta-spark, a name must be a column with minimum and
maximum, a struct, or a field within a struct; for a struct every leaf gets statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from delta_core.errors import InvalidTablePropertyError
from delta_core.schema.column_names import STATS_COLUMNS_KEY, is_list_of_names, parse_names, render_names
from delta_core.schema.column_paths import Path, display_path, is_related
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import VARIANT, DataType, StructField, StructType
from delta_core.table_features.stats_leaves import has_bounds


def require_stats_columns(columns: TableColumns) -> None:
    """Refuse a list with names other than columns that can have statistics.

    Raises:
        InvalidTablePropertyError: the message lists the problems.
    """
    names = columns.configuration.get(STATS_COLUMNS_KEY)
    if names is None or not names.strip():
        return
    paths = parse_names(names) if is_list_of_names(names) else None
    if paths is None:
        problems = ["It is not a list of names such as a, b.c, `d.e`."]
    else:
        problems = [problem for path in paths if (problem := _problem(columns, path)) is not None]
        problems += [f"{display_path(path)} is listed twice." for path in _repeated(paths)]
    if problems:
        raise InvalidTablePropertyError(
            f"The table property {STATS_COLUMNS_KEY} cannot be {names!r}.",
            cause=" ".join(problems),
            fix="List columns of numbers, strings, dates or timestamps, or structs of them, each once. Write "
            "names with characters other than ASCII letters, digits and underscores in backticks.",
        )


def keep_stats_columns(columns: TableColumns) -> TableColumns:
    """Remove names that are no longer allowed from the list, for example after dropping columns.

    A list without remaining names becomes empty. A list that cannot be parsed stays unchanged.
    """
    paths = parse_names(columns.configuration.get(STATS_COLUMNS_KEY, ""))
    allowed = [path for path in paths or () if _problem(columns, path) is None]
    if not paths or allowed == paths:
        return columns
    return replace(columns, configuration={**columns.configuration, STATS_COLUMNS_KEY: render_names(allowed)})


def _problem(columns: TableColumns, path: Path) -> str | None:
    """The reason why a name is not allowed in the list; None where it is allowed."""
    field = _field_at(columns.schema, path)
    if field is None:
        return f"The column {display_path(path)} does not exist."
    if path[0].casefold() in {name.casefold() for name in columns.partition_columns}:
        return f"{field.name} is a partition column, whose values are in the log for every file."
    if len(path) == 1 and not _may_have_bounds(field.data_type):
        return f"{field.name} is of type {field.data_type}, which has no minimum and maximum."
    return None


def _may_have_bounds(data_type: DataType) -> bool:
    # Writers that shred variants store bounds for them.
    return isinstance(data_type, StructType) or has_bounds(data_type) or data_type == VARIANT


def _field_at(schema: StructType, path: Path) -> StructField | None:
    inside: object = schema
    field = None
    for name in path:
        field = inside.find(name) if isinstance(inside, StructType) else None
        if field is None:
            return None
        inside = field.data_type
    return field


def _repeated(paths: list[Path]) -> Iterator[Path]:
    for index, path in enumerate(paths):
        if any(is_related(path, other) for other in paths[:index]):
            yield path
