"""Which columns `delta.dataSkippingStatsColumns` may name.

delta-spark holds the list against the schema whenever it changes a table's definition, and refuses every
change of a table whose list does not fit, be it a comment. So none is written that does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from delta_core.errors import InvalidTablePropertyError
from delta_core.schema.column_names import STATS_COLUMNS_KEY, is_list_of_names, parse_names
from delta_core.schema.column_paths import Path, shown
from delta_core.schema.types import VARIANT, DataType, StructType
from delta_core.table_features.stats_leaves import has_bounds


def require_stats_columns(
    schema: StructType, partition_columns: Sequence[str], configuration: Mapping[str, str]
) -> None:
    """Check the list, where there is one; the empty one is a list, too.

    Raises:
        InvalidTablePropertyError: it cannot be read, or names a column that there is not, a partition column,
            a column without bounds, or one twice. What is within a struct may be without bounds.
    """
    text = configuration.get(STATS_COLUMNS_KEY)
    if text is None or not text.strip():
        return
    paths = parse_names(text) if is_list_of_names(text) else None
    if paths is None:
        raise _refused(
            text,
            "It is no list of columns",
            "Put commas between the names, and all but letters of ASCII, digits and underscores in backticks",
        )
    partitions = {name.casefold() for name in partition_columns}
    leaves: Counter[Path] = Counter()
    for path in paths:
        if len(path) == 1 and path[0].casefold() in partitions:
            raise _refused(text, f"{shown(path)} is a partition column, of which files have no statistics")
        data_type = _type_at(schema, path)
        if data_type is None:
            raise _refused(text, f"There is no column {shown(path)}")
        if len(path) == 1 and not isinstance(data_type, StructType) and not _may_be_named(data_type):
            raise _refused(
                text, f"{shown(path)} is of type {data_type}, which has no least and greatest value"
            )
        leaves.update(_leaves(data_type, tuple(part.casefold() for part in path)))
    twice = [shown(path) for path, count in leaves.items() if count > 1]
    if twice:
        raise _refused(text, f"It names {', '.join(twice)} twice")


def _type_at(schema: StructType, path: Path) -> DataType | None:
    found: DataType = schema
    for name in path:
        field = found.find(name) if isinstance(found, StructType) else None
        if field is None:
            return None
        found = field.data_type
    return found


def _may_be_named(data_type: DataType) -> bool:
    # Writers that keep variants in parts have bounds of them.
    return has_bounds(data_type) or data_type == VARIANT


def _leaves(data_type: DataType, path: Path) -> Iterator[Path]:
    if isinstance(data_type, StructType):
        for field in data_type:
            yield from _leaves(field.data_type, (*path, field.name.casefold()))
    else:
        yield path


def _refused(text: str, cause: str, fix: str | None = None) -> InvalidTablePropertyError:
    advice = fix or "Name each column of the table that is to have statistics once, or unset the property"
    return InvalidTablePropertyError(
        f"The table property {STATS_COLUMNS_KEY} cannot be {text!r}.",
        cause=f"{cause}.",
        fix=f"{advice}.",
    )
