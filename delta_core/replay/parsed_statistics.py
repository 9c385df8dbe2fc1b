"""Conversion of a checkpoint's `stats_parsed` to the JSON form of statistics in commits.

See PROTOCOL.md, "Per-file Statistics" and "Checkpoint Schema" (`stats_parsed`). Values without a JSON form
(NaN and infinities) are omitted: no file is skipped because of a missing bound.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc


def statistics_to_json(values: pa.StructArray) -> pa.Array:
    """One JSON string per row; null if the row has no statistics."""
    rows = _readable(values).to_pylist()
    return pa.array([None if row is None else _string(row) for row in rows], pa.string())


def _string(row: dict[str, Any]) -> str:
    return b"".join(_encode(_pruned(row))).decode()


def _pruned(value: Any) -> Any:
    """The value without nulls and values that have no JSON form. Numbers stay exact."""
    if isinstance(value, dict):
        pruned = {name: _pruned(item) for name, item in value.items()}
        return {name: item for name, item in pruned.items() if item is not None}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="microseconds")
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, (int, str, bool, Decimal)) else None


def _encode(value: Any) -> list[bytes]:
    # A decimal is written digit by digit, since a float would lose digits.
    if isinstance(value, dict):
        parts = [b"{"]
        for position, (name, item) in enumerate(value.items()):
            parts.append((b"," if position else b"") + orjson.dumps(name) + b":")
            parts.extend(_encode(item))
        return [*parts, b"}"]
    if isinstance(value, Decimal):
        return [format(value, "f").encode()]
    return [orjson.dumps(value)]


def _readable(values: pa.StructArray) -> pa.StructArray:
    """The struct without values that have no ISO 8601 form: years beyond 9999, and times in nanoseconds.

    Times in nanoseconds come from INT96, where distant years wrap around to wrong years.
    """
    fields, children = [], []
    for index in range(values.type.num_fields):
        item = values.type.field(index)
        if pa.types.is_timestamp(item.type) and item.type.unit == "ns":
            continue
        child = pc.struct_field(values, index)
        if pa.types.is_struct(item.type):
            child = _readable(child)
        elif pa.types.is_date32(item.type) or pa.types.is_timestamp(item.type):
            child = _within_calendar(child)
        children.append(child)
        fields.append(pa.field(item.name, child.type))
    if not fields:
        return pa.array([None if row is None else {} for row in values.to_pylist()], pa.struct([]))
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(values))


def _within_calendar(values: pa.Array) -> pa.Array:
    year = pc.year(values)
    return pc.if_else(
        pc.and_(pc.greater(year, 0), pc.less(year, 10000)), values, pa.scalar(None, values.type)
    )
