"""A constant date or time plus or minus an interval: `TIMESTAMP '2020-01-01' - INTERVAL 3 DAYS`."""

from __future__ import annotations

import calendar
import datetime as dt

MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
SPANS = {
    "WEEK": dt.timedelta(weeks=1),
    "DAY": dt.timedelta(days=1),
    "HOUR": dt.timedelta(hours=1),
    "MINUTE": dt.timedelta(minutes=1),
    "SECOND": dt.timedelta(seconds=1),
    "MILLISECOND": dt.timedelta(milliseconds=1),
    "MICROSECOND": dt.timedelta(microseconds=1),
}


def move(value: dt.date, count: int, unit: str) -> dt.date:
    """The date or time that is `count` units later, or earlier for a negative count.

    Units of days and longer keep a date a date; shorter units turn it into a timestamp in UTC. In a month
    that is too short for the day, the result is the last day of the month.

    Args:
        value: a date or datetime.
        count: the number of units.
        unit: the unit in singular and upper case.

    Raises:
        ValueError: the unit is not supported.
        OverflowError: the result is not between the years 1 and 9999.
    """
    if unit in MONTHS:
        return _months_later(value, count * MONTHS[unit])
    if unit not in SPANS:
        raise ValueError(unit)
    if not isinstance(value, dt.datetime) and unit not in ("WEEK", "DAY"):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return value + count * SPANS[unit]


def _months_later(value: dt.date, months: int) -> dt.date:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise OverflowError(year)
    last = calendar.monthrange(year, month + 1)[1]
    return value.replace(year=year, month=month + 1, day=min(value.day, last))
