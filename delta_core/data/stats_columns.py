"""Which columns of a table get statistics, and the form their bounds take in JSON.

The columns are the leaves named by `delta.dataSkippingStatsColumns`, else the first
`delta.dataSkippingNumIndexedCols` leaves (32 by default, all when negative); partition columns do not
count. Numbers, strings, dates and timestamps have bounds; every leaf has a null count.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import orjson

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

_BOUNDED = frozenset({STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ})
_ASCII_TIE_BREAKER = "\x7f"
_TIE_BREAKER = "\U0010ffff"
_EPOCH = dt.datetime(1970, 1, 1)
_NAME_PART = re.compile(r"\s*+(?:`((?:[^`]|``)*+)`|([^`.,]++))\s*+(?=[.,]|$)")
_SKIPPED = re.compile(r"`+|[.,]|[^`.,]+")


class SkippingProperties(Protocol):
    """The two table properties that say which columns get statistics."""

    @property
    def data_skipping_num_indexed_cols(self) -> int:
        """Number of leaves; negative means all."""
        ...

    @property
    def data_skipping_stats_columns(self) -> str | Sequence[str] | None:
        """Comma-separated column names (or a sequence of them); None when the number decides."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsLeaf:
    """One leaf with statistics.

    Attributes:
        path: in the schema, or in files where they call columns otherwise.
        prefix_length: characters that bounds of strings are cut to.
    """

    path: tuple[str, ...]
    data_type: DataType
    prefix_length: int = STRING_PREFIX_LENGTH

    @property
    def has_bounds(self) -> bool:
        """Whether minimum and maximum are kept, or the null count alone."""
        return has_bounds(self.data_type)


def has_bounds(data_type: DataType) -> bool:
    """Whether a type's minimum and maximum are kept."""
    return isinstance(data_type, DecimalType) or data_type in _BOUNDED


def stats_leaves(
    schema: StructType,
    properties: SkippingProperties | None = None,
    *,
    partition_columns: Sequence[str] = (),
) -> list[StatsLeaf]:
    """The leaves that get statistics, in schema order. Arrays and maps are leaves."""
    partitions = {name.casefold() for name in partition_columns}
    data = StructType(tuple(field for field in schema if field.name.casefold() not in partitions))
    # Named by a table property that not everything which has the other two knows of.
    length = getattr(properties, "data_skipping_string_prefix_length", STRING_PREFIX_LENGTH)
    leaves = list(_leaves(data, (), length))
    if properties is None:
        return leaves[:32]
    named = properties.data_skipping_stats_columns
    if named is not None:
        wanted = parse_column_list(named if isinstance(named, str) else ",".join(named))
        return [leaf for leaf in leaves if any(_is_below(leaf.path, path) for path in wanted)]
    count = properties.data_skipping_num_indexed_cols
    return leaves if count < 0 else leaves[:count]


def parse_column_list(text: str) -> list[tuple[str, ...]]:
    """`a, b.c, `x.y`` as paths, in lower case."""
    paths: list[tuple[str, ...]] = []
    parts: list[str] = []
    position = 0
    while position < len(text):
        match = _NAME_PART.match(text, position)
        if match is None:
            # No name begins here: over all of it at once, or a long text without names takes for ever.
            skipped = _SKIPPED.match(text, position)
            if text[position] == "," and parts:
                paths.append(tuple(parts))
                parts = []
            position = skipped.end() if skipped else position + 1
            continue
        parts.append((match[1].replace("``", "`") if match[1] is not None else match[2].strip()).casefold())
        position = match.end()
        if position >= len(text) or text[position] == ",":
            paths.append(tuple(parts))
            parts = []
        position += 1
    return paths


def truncate_minimum(value: str, prefix_length: int = STRING_PREFIX_LENGTH) -> str:
    """A string at most as great as `value`, of at most so many characters."""
    return value[:prefix_length]


def truncate_maximum(value: str, prefix_length: int = STRING_PREFIX_LENGTH) -> str | None:
    """A string at least as great as every string with this maximum, or None when none is short enough.

    A character is appended after the prefix that sorts above the first one cut off, in the order of
    UTF-8 bytes; where the cut-off character is the greatest there is, the prefix grows.
    """
    if len(value) <= prefix_length:
        return value
    for length in range(prefix_length, 2 * prefix_length + 1):
        if length >= len(value):
            return value
        cut = value[length]
        if cut < _ASCII_TIE_BREAKER:
            return value[:length] + _ASCII_TIE_BREAKER
        if cut != _TIE_BREAKER:
            return value[:length] + _TIE_BREAKER
    return None


def bound_to_json(
    value: object, data_type: DataType, *, maximum: bool, prefix_length: int = STRING_PREFIX_LENGTH
) -> object | None:
    """A minimum or maximum as it goes into the JSON; None when it must be left out.

    The result bounds every value that the exact bound does: strings are cut to a prefix, timestamps go
    to milliseconds, the maximum up and the minimum down. NaN and infinities have no JSON form.
    """
    match value:
        case None:
            return None
        case str():
            cut = truncate_maximum if maximum else truncate_minimum
            return cut(value, prefix_length)
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return orjson.Fragment(format(value, "f").encode())
        case dt.datetime():
            return _timestamp_text(value, zoned=data_type == TIMESTAMP, up=maximum)
        case dt.date():
            return value.isoformat()
    return value


def stats_json(
    *,
    num_records: int,
    minimums: dict[tuple[str, ...], object],
    maximums: dict[tuple[str, ...], object],
    null_counts: dict[tuple[str, ...], int],
    nan_free: Sequence[tuple[str, ...]] = (),
    tight_bounds: bool | None = None,
) -> str:
    """The statistics of one file as JSON text (PROTOCOL.md, "Per-file Statistics").

    Args:
        nan_free: floating-point columns known to hold no NaN. Written as `nanCount` zero, an addition
            of ours that other readers ignore: without it a maximum says nothing about NaN, which
            sorts above all numbers and which some writers leave out of their bounds.
        tight_bounds: written when not None (tables with deletion vectors).
    """
    document: dict[str, Any] = {
        "numRecords": num_records,
        "minValues": _tree(minimums),
        "maxValues": _tree(maximums),
        "nullCount": _tree(null_counts),
    }
    if nan_free:
        document["nanCount"] = _tree(dict.fromkeys(nan_free, 0))
    if tight_bounds is not None:
        document["tightBounds"] = tight_bounds
    return orjson.dumps(document).decode()


def _timestamp_text(value: dt.datetime, *, zoned: bool, up: bool) -> str | None:
    naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    micros = (naive - _EPOCH) // dt.timedelta(microseconds=1)
    millis = -(-micros // 1000) if up else micros // 1000
    try:
        rounded = _EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return rounded.isoformat(timespec="milliseconds") + ("Z" if zoned else "")


def _tree(values: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return tree


def _leaves(schema: StructType, prefix: tuple[str, ...], length: int) -> Iterator[StatsLeaf]:
    for field in schema:
        path = (*prefix, field.name)
        if isinstance(field.data_type, StructType):
            yield from _leaves(field.data_type, path, length)
        else:
            yield StatsLeaf(path=path, data_type=field.data_type, prefix_length=length)


def _is_below(path: tuple[str, ...], ancestor: tuple[str, ...]) -> bool:
    return tuple(part.casefold() for part in path[: len(ancestor)]) == ancestor
