"""The form that statistics take in JSON: what a bound becomes, and the text of one file.

Which columns get statistics is said in `table_features.stats_leaves`.
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
            if value == 0:
                # Some readers order the two zeros, and each must lie within the bounds.
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


def _timestamp_string(value: dt.datetime, *, zoned: bool, up: bool) -> str | None:
    naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    micros = (naive - _EPOCH) // dt.timedelta(microseconds=1)
    millis = -(-micros // 1000) if up else micros // 1000
    try:
        rounded = _EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return rounded.isoformat(timespec="milliseconds") + ("Z" if zoned else "")


def _tree(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return tree
