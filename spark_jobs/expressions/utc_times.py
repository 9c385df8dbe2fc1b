"""Dates and times as native Spark expressions that use UTC for timestamps, in any session.

Spark's functions of a timestamp, and its casts to and from a timestamp, use the session's time zone. The
functions here use the timestamp's microseconds since the epoch. Dates and timestamps without a zone do not
depend on the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.expressions.datetime_functions import TRUNCATION_UNITS, pattern_parts
from delta_core.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_WIDTHS = {"hour": (_DAY, _HOUR), "minute": (_HOUR, _MINUTE), "second": (_MINUTE, _SECOND)}
_TRUNCATED_MICROS = {
    "hour": _HOUR,
    "minute": _MINUTE,
    "second": _SECOND,
    "millisecond": 1_000,
    "microsecond": 1,
}
_LETTERS = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}


def instant(micros: int) -> Column:
    """A constant timestamp, from microseconds since the epoch."""
    from pyspark.sql import functions as fn

    return fn.timestamp_micros(fn.lit(micros).cast("bigint"))


def date_of(value: Column, kind: DataType) -> Column:
    """The date, in UTC, of a date or time."""
    from pyspark.sql import functions as fn

    if kind == DATE:
        return value
    if kind == TIMESTAMP_NTZ:
        return value.cast("date")
    return fn.date_from_unix_date(_quotient(fn.unix_micros(value), _DAY).cast("int"))


def as_instant(value: Column, kind: DataType) -> Column:
    """A date or time as a timestamp: midnight of the date, or the wall clock's time, in UTC."""
    from pyspark.sql import functions as fn

    if kind == TIMESTAMP:
        return value
    if kind == DATE:
        return fn.timestamp_seconds(fn.unix_date(value).cast("bigint") * fn.lit(86_400))
    # A string with a zone is the only conversion between these types that does not depend on the session.
    return fn.concat(value.cast("string"), fn.lit("Z")).cast(to_spark_type(TIMESTAMP))


def as_wall_clock(value: Column, kind: DataType) -> Column:
    """A date or time as a timestamp without a zone: the wall clock's time in UTC."""
    from pyspark.sql import functions as fn

    if kind == TIMESTAMP_NTZ:
        return value
    if kind == DATE:
        return value.cast(to_spark_type(TIMESTAMP_NTZ))
    day = date_of(value, kind)
    micros_of_minute = fn.pmod(fn.unix_micros(value), fn.lit(_MINUTE))
    seconds = micros_of_minute.cast("decimal(8,0)") * fn.lit("0.000001").cast("decimal(7,6)")
    return fn.make_timestamp_ntz(
        fn.year(day),
        fn.month(day),
        fn.day(day),
        part("hour", value, kind),
        part("minute", value, kind),
        seconds,
    )


def part(name: str, value: Column, kind: DataType) -> Column:
    """A component of a date or time as a number, by the name of the SQL function."""
    from pyspark.sql import functions as fn

    if name not in _WIDTHS:
        found: Column = getattr(fn, name)(date_of(value, kind))
        return found
    if kind == TIMESTAMP_NTZ:
        from_wall_clock: Column = getattr(fn, name)(value)
        return from_wall_clock
    period, width = _WIDTHS[name]
    return _quotient(fn.pmod(fn.unix_micros(value), fn.lit(period)), width).cast("int")


def truncate_timestamp(unit: str, value: Column, kind: DataType) -> Column:
    """A date or time truncated to a unit, as a timestamp."""
    from pyspark.sql import functions as fn

    name = TRUNCATION_UNITS[unit.upper()]
    if name == "day":
        return as_instant(date_of(value, kind), DATE)
    if name not in _TRUNCATED_MICROS:
        return as_instant(truncate_date(value, kind, unit), DATE)
    micros = fn.unix_micros(as_instant(value, kind))
    return fn.timestamp_micros(micros - fn.pmod(micros, fn.lit(_TRUNCATED_MICROS[name])))


def truncate_date(value: Column, kind: DataType, unit: str) -> Column:
    """A date or time truncated to a unit, as a date."""
    from pyspark.sql import functions as fn

    return fn.trunc(date_of(value, kind), TRUNCATION_UNITS[unit.upper()])


def format_time(value: Column, kind: DataType, pattern: str) -> Column:
    """A date or time as a formatted string; null for a year outside of 1 to 9999.

    It does not use Spark's `date_format`, which interprets patterns by the session's policy.
    """
    from pyspark.sql import functions as fn

    at = as_instant(value, kind) if kind == DATE else value
    at_kind = TIMESTAMP if kind == DATE else kind
    strings = []
    for piece in pattern_parts(pattern):
        if piece in _LETTERS:
            number = part(_LETTERS[piece], at, at_kind)
            strings.append(fn.lpad(number.cast("string"), len(piece), "0"))
        else:
            strings.append(fn.lit(piece.strip("'")))
    return fn.when(part("year", at, at_kind).between(1, 9999), fn.concat(*strings))


def add_days(value: Column, kind: DataType, days: Column) -> Column:
    """The date that is `days` days after a date or time; null when it is out of range."""
    from pyspark.sql import functions as fn

    number = fn.unix_date(date_of(value, kind)).cast("bigint") + days.cast("bigint")
    return fn.date_from_unix_date(number.try_cast("int"))


def timestamp_of_string(string: Column) -> Column:
    """The timestamp of a string, in UTC when the string has no zone; null for other strings."""
    from pyspark.sql import functions as fn

    zoned = string.try_cast(to_spark_type(TIMESTAMP))
    wall = as_instant(string.try_cast(to_spark_type(TIMESTAMP_NTZ)), TIMESTAMP_NTZ)
    return fn.when(string.rlike(r":\d{1,2}(\.\d*)?\s*[^\s\d:.]"), zoned).otherwise(wall)


def _quotient(micros: Column, width: int) -> Column:
    """The integer quotient of a number and `width`, rounded down."""
    from pyspark.sql import functions as fn

    # A double represents operands and result exactly: days are a multiple of 2^13 microseconds.
    multiple = (micros - fn.pmod(micros, fn.lit(width))).cast("double")
    return (multiple / fn.lit(float(width))).cast("bigint")
