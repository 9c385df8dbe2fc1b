"""The columns of a table that get statistics (PROTOCOL.md, "Per-file Statistics").

The columns are the leaves listed in `delta.dataSkippingStatsColumns`, or else the first
`delta.dataSkippingNumIndexedCols` leaves (32 by default, all when negative), not counting partition columns.
Numbers, strings, dates and timestamps have bounds; every leaf has a null count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from delta_core.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructType,
)

STRING_PREFIX_LENGTH = 32
"""The default number of characters that bounds of strings are truncated to."""

_BOUNDED = frozenset({STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ})
_NAME_PART = re.compile(r"\s*+(?:`((?:[^`]|``)*+)`|([^`.,]++))\s*+(?=[.,]|$)")
_SKIPPED = re.compile(r"`+|[.,]|[^`.,]+")


class SkippingProperties(Protocol):
    """The two table properties that determine which columns get statistics."""

    @property
    def data_skipping_num_indexed_cols(self) -> int:
        """Number of leaves; negative means all."""
        ...

    @property
    def data_skipping_stats_columns(self) -> str | Sequence[str] | None:
        """Comma-separated column names (or a sequence of them); None when the number applies."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsLeaf:
    """One leaf with statistics.

    Attributes:
        path: the path in the schema, or in files where columns have other names there.
        prefix_length: number of characters that bounds of strings are truncated to.
    """

    path: tuple[str, ...]
    data_type: DataType
    prefix_length: int = STRING_PREFIX_LENGTH

    @property
    def has_bounds(self) -> bool:
        """Whether the leaf has minimum and maximum, or only a null count."""
        return has_bounds(self.data_type)


def has_bounds(data_type: DataType) -> bool:
    """Whether statistics of a type include minimum and maximum."""
    return isinstance(data_type, DecimalType) or data_type in _BOUNDED


def stats_leaves(
    schema: StructType,
    properties: SkippingProperties | None = None,
    *,
    partition_columns: Sequence[str] = (),
) -> list[StatsLeaf]:
    """The leaves that get statistics, in schema order. Arrays and maps are leaves."""
    leaves = all_leaves(schema, properties, partition_columns=partition_columns)
    if properties is None:
        return leaves[:32]
    named = properties.data_skipping_stats_columns
    if named is not None:
        selected = parse_column_list(named if isinstance(named, str) else ",".join(named))
        return [leaf for leaf in leaves if any(_is_below(leaf.path, path) for path in selected)]
    count = properties.data_skipping_num_indexed_cols
    return leaves if count < 0 else leaves[:count]


def all_leaves(
    schema: StructType,
    properties: SkippingProperties | None = None,
    *,
    partition_columns: Sequence[str] = (),
) -> list[StatsLeaf]:
    """All leaves except partition columns, in schema order, regardless of the properties."""
    partitions = {name.casefold() for name in partition_columns}
    data = StructType(tuple(field for field in schema if field.name.casefold() not in partitions))
    # Not every implementation of `SkippingProperties` has this property.
    length = getattr(properties, "data_skipping_string_prefix_length", STRING_PREFIX_LENGTH)
    return list(_leaves(data, (), length))


def parse_column_list(names: str) -> list[tuple[str, ...]]:
    """The paths in a list such as `a, b.c, `x.y``, in lower case."""
    paths: list[tuple[str, ...]] = []
    parts: list[str] = []
    position = 0
    while position < len(names):
        match = _NAME_PART.match(names, position)
        if match is None:
            # No name begins here. Skip the whole run: skipping single characters would be quadratic.
            skipped = _SKIPPED.match(names, position)
            if names[position] == "," and parts:
                paths.append(tuple(parts))
                parts = []
            position = skipped.end() if skipped else position + 1
            continue
        parts.append((match[1].replace("``", "`") if match[1] is not None else match[2].strip()).casefold())
        position = match.end()
        if position >= len(names) or names[position] == ",":
            paths.append(tuple(parts))
            parts = []
        position += 1
    return paths


def _leaves(schema: StructType, prefix: tuple[str, ...], length: int) -> Iterator[StatsLeaf]:
    for field in schema:
        path = (*prefix, field.name)
        if isinstance(field.data_type, StructType):
            yield from _leaves(field.data_type, path, length)
        else:
            yield StatsLeaf(path=path, data_type=field.data_type, prefix_length=length)


def _is_below(path: tuple[str, ...], ancestor: tuple[str, ...]) -> bool:
    return tuple(part.casefold() for part in path[: len(ancestor)]) == ancestor
