"""Functions of dates and timestamps: parts, truncation to a unit, formatting, date arithmetic.

As in Spark SQL, with the session's time zone at UTC.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.schema.arrow import TIMESTAMP_ARROW

Operand = Any
"""A pyarrow Array, ChunkedArray or Scalar."""

_NTZ = pa.timestamp("us")

TRUNCATION_UNITS: dict[str, str] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
"""The units of `date_trunc`: Spark's names in upper case, and Arrow's names."""

DATE_UNITS = frozenset({"year", "quarter", "month", "week"})
"""The units of `trunc`."""

PARTS: dict[str, Callable[[Operand], Operand]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "weekofyear": pc.iso_week,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    # dayofweek starts with 1 on Sunday, weekday with 0 on Monday.
    "dayofweek": lambda value: pc.day_of_week(value, count_from_zero=False, week_start=7),
    "weekday": pc.day_of_week,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
"""Functions that extract a number from a date or timestamp, by Spark's function names."""

# The letters that a pattern may contain, and Arrow's directive for each. All have a fixed width.
_DIRECTIVES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PATTERN = re.compile(r"yyyy|MM|dd|HH|mm|ss|'[^']+'|[^A-Za-z']+")
_LAST_SECOND = dt.datetime(9999, 12, 31, 23, 59, 59)


def pattern_parts(pattern: str) -> list[str]:
    """The parts of a `date_format` pattern: supported letters, strings in single quotes, punctuation."""
    return _PATTERN.findall(pattern)


def pattern_directives(pattern: str) -> list[str] | None:
    """The letters of a `date_format` pattern, such as `["yyyy", "MM"]`; None if one is not supported."""
    parts = pattern_parts(pattern)
    if "".join(parts) != pattern:
        return None
    return [part for part in parts if part in _DIRECTIVES]


def is_sortable(pattern: str) -> bool:
    """Whether formatted strings sort like the times truncated to the pattern's last letter."""
    directives = pattern_directives(pattern)
    return bool(directives) and directives == list(_DIRECTIVES)[: len(directives or ())]


def date_trunc(unit: str, value: Operand) -> Operand:
    """The start of the unit that a time is in, as a timestamp; weeks start on Monday."""
    if not pa.types.is_timestamp(value.type) or value.type != TIMESTAMP_ARROW:
        value = pc.cast(value, TIMESTAMP_ARROW)
    return _floor(value, TRUNCATION_UNITS[unit.upper()])


def trunc(value: Operand, unit: str) -> Operand:
    """The first date of the unit that a date is in."""
    return _floor(as_date(value), TRUNCATION_UNITS[unit.upper()])


def date_format(value: Operand, pattern: str) -> Operand:
    """Format a time. Raises ArrowInvalid beyond the year 9999, which has no string of fixed width."""
    wall = pc.cast(pc.cast(value, TIMESTAMP_ARROW) if pa.types.is_date(value.type) else value, _NTZ)
    seconds = pc.cast(pc.floor_temporal(wall, unit="second"), pa.timestamp("s"))
    limits = (pa.scalar(dt.datetime(1, 1, 1), seconds.type), pa.scalar(_LAST_SECOND, seconds.type))
    outside = pc.or_kleene(pc.less(seconds, limits[0]), pc.greater(seconds, limits[1]))
    if _any(outside):
        raise pa.ArrowInvalid("a year is not between 1 and 9999")
    directive = "".join(
        _DIRECTIVES.get(part) or part.strip("'").replace("%", "%%") for part in pattern_parts(pattern)
    )
    return pc.strftime(seconds, format=directive)


def add_days(value: Operand, days: Operand) -> Operand:
    """The date that is `days` days later."""
    sums = pc.add_checked(pc.cast(as_date(value), pa.int32()), pc.cast(days, pa.int32()))
    return pc.cast(sums, pa.date32())


def subtract_days(value: Operand, days: Operand) -> Operand:
    """The date that is `days` days earlier."""
    sums = pc.subtract_checked(pc.cast(as_date(value), pa.int32()), pc.cast(days, pa.int32()))
    return pc.cast(sums, pa.date32())


def days_between(end: Operand, start: Operand) -> Operand:
    """The days from `start` to `end`."""
    return pc.subtract_checked(pc.cast(as_date(end), pa.int32()), pc.cast(as_date(start), pa.int32()))


def last_day(value: Operand) -> Operand:
    """The last date of a date's month."""
    next_first = pc.ceil_temporal(as_date(value), unit="month", ceil_is_strictly_greater=True)
    return subtract_days(next_first, pa.scalar(1, pa.int32()))


def as_date(value: Operand) -> Operand:
    """The date of a timestamp."""
    if pa.types.is_date(value.type):
        return value
    return pc.cast(value, pa.date32(), safe=False)


def _floor(value: Operand, unit: str) -> Operand:
    return pc.floor_temporal(value, unit=unit)


def _any(mask: Operand) -> bool:
    if isinstance(mask, pa.Scalar):
        return bool(mask.as_py())
    return bool(pc.any(mask).as_py())
