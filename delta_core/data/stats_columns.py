"""The JSON form of statistics: bounds, and the document of one file.

`table_features.stats_leaves` decides which columns get statistics.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson

from delta_core.schema.types import TIMESTAMP, DataType
from delta_core.table_features.stats_leaves import (
    STRING_PREFIX_LENGTH,
    SkippingProperties,
    StatsLeaf,
    has_bounds,
    parse_column_list,
    stats_leaves,
)

__all__ = [
    "STRING_PREFIX_LENGTH",
    "SkippingProperties",
    "StatsLeaf",
    "bound_to_json",
    "has_bounds",
    "parse_column_list",
    "stats_json",
    "stats_leaves",
    "truncate_maximum",
    "truncate_minimum",
]

_ASCII_TIE_BREAKER = "\x7f"
_TIE_BREAKER = "\U0010ffff"
_EPOCH = dt.datetime(1970, 1, 1)


def truncate_minimum(value: str, prefix_length: int = STRING_PREFIX_LENGTH) -> str:
    """A string not greater than `value`, with at most `prefix_length` characters."""
    return value[:prefix_length]


def truncate_maximum(value: str, prefix_length: int = STRING_PREFIX_LENGTH) -> str | None:
    """A string not less than every string with this maximum, or None when none is short enough.

    A character is appended to the prefix that sorts after the first truncated character, in the order of
    UTF-8 bytes. When the truncated character is the greatest possible one, the prefix is extended.
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
    """A minimum or maximum in its JSON form; None when it must be omitted.

    The result also bounds every value that the exact bound does. Strings are truncated to a prefix;
    timestamps are rounded to milliseconds, the maximum up and the minimum down. NaN and infinities have no
    JSON form.
    """
    match value:
        case None:
            return None
        case str():
            cut = truncate_maximum if maximum else truncate_minimum
            return cut(value, prefix_length)
        case float():
            if value == 0:
                # Some readers order the two zeros, and both must lie within the bounds.
                return 0.0 if maximum else -0.0
            return value if math.isfinite(value) else None
        case Decimal():
            return orjson.Fragment(format(value, "f").encode())
        case dt.datetime():
            return _timestamp_string(value, zoned=data_type == TIMESTAMP, up=maximum)
        case dt.date():
            return value.isoformat()
    return value


def stats_json(
    *,
    num_records: int,
    minimums: Mapping[tuple[str, ...], object],
    maximums: Mapping[tuple[str, ...], object],
    null_counts: Mapping[tuple[str, ...], int],
    nan_free: Sequence[tuple[str, ...]] = (),
    tight_bounds: bool | None = None,
) -> str:
    """The statistics of one file as JSON (PROTOCOL.md, "Per-file Statistics").

    Args:
        nan_free: floating-point columns that contain no NaN. Written as `nanCount` zero, an extension of this
            library that other readers ignore. Without it a maximum does not exclude NaN, which sorts after
            all numbers and which some writers omit from their bounds.
        tight_bounds: written when not None (tables with deletion vectors).
    """
    document: dict[str, Any] = {
        "numRecords": num_records,
        "minValues": _nested(minimums),
        "maxValues": _nested(maximums),
        "nullCount": _nested(null_counts),
    }
    if nan_free:
        document["nanCount"] = _nested(dict.fromkeys(nan_free, 0))
    if tight_bounds is not None:
        document["tightBounds"] = tight_bounds
    return orjson.dumps(document).decode()


def _timestamp_string(value: dt.datetime, *, zoned: bool, up: bool) -> str | None:
    naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    micros = (naive - _EPOCH) // dt.timedelta(microseconds=1)
    millis = -(-micros // 1000) if up else micros // 1000
    try:
        rounded = _EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return rounded.isoformat(timespec="milliseconds") + ("Z" if zoned else "")


def _nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return tree
