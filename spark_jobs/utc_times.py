"""Dates and times as native expressions that read a timestamp in UTC, whatever zone the session has.

Spark's own functions of a timestamp, and its casts to and from one, go by the session's time zone. These go
by the microseconds that a timestamp is; dates and timestamps without a zone have none to go by.
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
_CUT_TO = {"hour": _HOUR, "minute": _MINUTE, "second": _SECOND, "millisecond": 1_000, "microsecond": 1}
_LETTERS = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}


def instant(micros: int) -> Column:
    """A constant timestamp."""
    from pyspark.sql import functions as fn

    return fn.timestamp_micros(fn.lit(micros).cast("bigint"))


def date_of(value: Column, kind: DataType) -> Column:
    """The date of a date or time."""
    from pyspark.sql import functions as fn

    if kind == DATE:
        return value
    if kind == TIMESTAMP_NTZ:
        return value.cast("date")
    return fn.date_from_unix_date(_whole(fn.unix_micros(value), _DAY).cast("int"))


def as_instant(value: Column, kind: DataType) -> Column:
    """A date or time as a timestamp: midnight of the date, the wall clock's time in UTC."""
    from pyspark.sql import functions as fn

    if kind == TIMESTAMP:
        return value
    if kind == DATE:
        return fn.timestamp_seconds(fn.unix_date(value).cast("bigint") * fn.lit(86_400))
    # A text with its zone is the one way from the one type to the other that no session has a say in.
    return fn.concat(value.cast("string"), fn.lit("Z")).cast(to_spark_type(TIMESTAMP))


def as_wall_clock(value: Column, kind: DataType) -> Column:
    """A date or time as a timestamp without a zone: what a clock in UTC shows."""
    from pyspark.sql import functions as fn

    if kind == TIMESTAMP_NTZ:
        return value
    if kind == DATE:
        return value.cast(to_spark_type(TIMESTAMP_NTZ))
    day = date_of(value, kind)
    of_minute = fn.pmod(fn.unix_micros(value), fn.lit(_MINUTE))
    seconds = of_minute.cast("decimal(8,0)") * fn.lit("0.000001").cast("decimal(7,6)")
    return fn.make_timestamp_ntz(
        fn.year(day),
        fn.month(day),
        fn.day(day),
        part("hour", value, kind),
        part("minute", value, kind),
        seconds,
    )


def part(name: str, value: Column, kind: DataType) -> Column:
    """A number out of a date or time, by the name of the function."""
    from pyspark.sql import functions as fn

    if name not in _WIDTHS:
        found: Column = getattr(fn, name)(date_of(value, kind))
        return found
    if kind == TIMESTAMP_NTZ:
        of_wall: Column = getattr(fn, name)(value)
        return of_wall
    around, width = _WIDTHS[name]
    return _whole(fn.pmod(fn.unix_micros(value), fn.lit(around)), width).cast("int")


def cut_to(unit: str, value: Column, kind: DataType) -> Column:
    """The start of the unit that a date or time is in, as a timestamp."""
    from pyspark.sql import functions as fn

    name = TRUNCATION_UNITS[unit.upper()]
    if name == "day":
        return as_instant(date_of(value, kind), DATE)
    if name not in _CUT_TO:
        return as_instant(first_date(value, kind, unit), DATE)
    micros = fn.unix_micros(as_instant(value, kind))
    return fn.timestamp_micros(micros - fn.pmod(micros, fn.lit(_CUT_TO[name])))


def first_date(value: Column, kind: DataType, unit: str) -> Column:
    """The first date of the unit that a date or time is in."""
    from pyspark.sql import functions as fn

    return fn.trunc(date_of(value, kind), TRUNCATION_UNITS[unit.upper()])


def formatted(value: Column, kind: DataType, pattern: str) -> Column:
    """A date or time as text; null for a year that has no text of fixed width.

    Put together here: Spark's own function reads patterns as the session's policy says.
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


def moved(value: Column, kind: DataType, days: Column) -> Column:
    """The date so many days later; null where there is no such date."""
    from pyspark.sql import functions as fn

    number = fn.unix_date(date_of(value, kind)).cast("bigint") + days.cast("bigint")
    return fn.date_from_unix_date(number.try_cast("int"))


def timestamp_of_string(text: Column) -> Column:
    """The timestamp that a text spells, in UTC where it names no zone; null for other text."""
    from pyspark.sql import functions as fn

    zoned = text.try_cast(to_spark_type(TIMESTAMP))
    wall = as_instant(text.try_cast(to_spark_type(TIMESTAMP_NTZ)), TIMESTAMP_NTZ)
    return fn.when(text.rlike(r":\d{1,2}(\.\d*)?\s*[^\s\d:.]"), zoned).otherwise(wall)


def _whole(micros: Column, width: int) -> Column:
    """How many times `width` goes into a number, rounded down."""
    from pyspark.sql import functions as fn

    # A double holds both sides and the result exactly: days are a multiple of 2^13 microseconds.
    multiple = (micros - fn.pmod(micros, fn.lit(width))).cast("double")
    return (multiple / fn.lit(float(width))).cast("bigint")
