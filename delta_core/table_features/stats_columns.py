"""The list of columns that get statistics, `delta.dataSkippingStatsColumns`, held against the columns.

A name that is no column's would leave the table without statistics in silence, and delta-spark changes the
definition of no table that has one. As there a name is that of a column that has bounds, or of a struct or
what is within one, of which every leaf counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from delta_core.errors import InvalidTablePropertyError
from delta_core.schema.column_names import STATS_COLUMNS_KEY, is_list_of_names, parse_names, render_names
from delta_core.schema.column_paths import Path, is_related, shown
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import VARIANT, DataType, StructField, StructType
from delta_core.table_features.stats_leaves import has_bounds


def require_stats_columns(columns: TableColumns) -> None:
    """Refuse a list that names something else than columns that can have statistics.

    Raises:
        InvalidTablePropertyError: names what is wrong with it.
    """
    text = columns.configuration.get(STATS_COLUMNS_KEY)
    if text is None or not text.strip():
        return
    paths = parse_names(text) if is_list_of_names(text) else None
    if paths is None:
        problems = ["It is no list of names such as a, b.c, `d.e`."]
    else:
        problems = [found for path in paths if (found := _problem(columns, path)) is not None]
        problems += [f"{shown(path)} is named twice." for path in _repeated(paths)]
    if problems:
        raise InvalidTablePropertyError(
            f"The table property {STATS_COLUMNS_KEY} cannot be {text!r}.",
            cause=" ".join(problems),
            fix="Name columns of numbers, text, dates or times, or structs of them, each once; "
            "names of other characters than ASCII letters, digits and underscores in backticks.",
        )


def keep_stats_columns(columns: TableColumns) -> TableColumns:
    """The same without names in the list that the columns no longer allow, as after dropping them.

    A list that loses its last name becomes the empty one. One that cannot be read stays as it is.
    """
    paths = parse_names(columns.configuration.get(STATS_COLUMNS_KEY, ""))
    kept = [path for path in paths or () if _problem(columns, path) is None]
    if not paths or kept == paths:
        return columns
    return replace(columns, configuration={**columns.configuration, STATS_COLUMNS_KEY: render_names(kept)})


def _problem(columns: TableColumns, path: Path) -> str | None:
    """Why a name cannot stand there; None where it can."""
    field = _found(columns.schema, path)
    if field is None:
        return f"There is no column {shown(path)}."
    if path[0].casefold() in {name.casefold() for name in columns.partition_columns}:
        return f"{field.name} is a partition column, whose values the log has for every file."
    if len(path) == 1 and not _may_have_bounds(field.data_type):
        return f"{field.name} is of the type {field.data_type}, which has no least and greatest value."
    return None


def _may_have_bounds(data_type: DataType) -> bool:
    # Writers that keep variants in parts have bounds of them.
    return isinstance(data_type, StructType) or has_bounds(data_type) or data_type == VARIANT


def _found(schema: StructType, path: Path) -> StructField | None:
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
