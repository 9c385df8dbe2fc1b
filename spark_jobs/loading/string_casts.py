"""Casts of strings to a type. A string that the type would round or truncate is not a value of the type.

Spark's casts ignore what follows a date, take the digits of every script in a decimal, and round. So a string
must also have the form of a value of its type, written in ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from delta_core.schema import types as delta
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_DECIMAL: Final = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?\s*$"
_PARTS: Final = r"^\s*[+-]?([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?\s*$"
_DOUBLE: Final = r"^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))\s*$"

_MIDNIGHT: Final = r"0{1,2}(?::0{1,2}(?::0{1,2}(?:\.0*)?)?)?"
_ZONE: Final = r"(?:\s*[A-Za-z+-][A-Za-z0-9_/:+-]*)?"


def _time(fraction: str) -> str:
    return rf"[0-9]{{1,2}}(?::[0-9]{{1,2}}(?::[0-9]{{1,2}}(?:\.{fraction})?)?)?"


def _moment(time: str) -> str:
    """A pattern for a year, a month or a date, after which a time may follow."""
    return rf"^\s*[+-]?[0-9]{{4,7}}(?:-[0-9]{{1,2}}(?:-[0-9]{{1,2}}(?:[T ]\s*(?:{time})?)?)?)?\s*$"


_ROUNDED: Final = _moment(_time("[0-9]*") + _ZONE)
_MICROSECONDS: Final = _time("[0-9]{0,6}0*")
_FORMS: Final[Mapping[delta.DataType, str]] = {
    delta.DATE: _ROUNDED,
    delta.TIMESTAMP: _ROUNDED,
    delta.TIMESTAMP_NTZ: _ROUNDED,
}
_EXACT_FORMS: Final[Mapping[delta.DataType, str]] = {
    delta.DATE: _moment(_MIDNIGHT),
    delta.TIMESTAMP: _moment(_MICROSECONDS + _ZONE),
    delta.TIMESTAMP_NTZ: _moment(_MICROSECONDS),
}


def cast_string(string: Column, target: delta.DataType, *, exact: bool) -> tuple[Column, Column]:
    """The string cast to `target`, and whether the string is not a value of that type.

    Args:
        string: a column of strings. White space around a value is ignored.
        target: a primitive type.
        exact: whether to refuse digits that a decimal would round, a time of day or a zone that a date or a
            timestamp without zone would drop, and fractions of a microsecond. A fraction that a float or a
            double cannot represent exactly is rounded as usual; a number beyond their range is refused.

    Returns:
        The value, or null; and a boolean that is true when the string is not null but the value is null.
    """
    from pyspark.sql import functions as fn

    value = string.try_cast(to_spark_type(target))
    is_valid = _is_valid(string, value, target, exact=exact)
    if is_valid is not None:
        value = fn.when(is_valid, value)
    return value, string.isNotNull() & value.isNull()


def _is_valid(string: Column, value: Column, target: delta.DataType, *, exact: bool) -> Column | None:
    """Whether the string has the form of the type, and with `exact` whether the type represents it exactly.

    None for a type whose cast refuses all other strings.
    """
    from pyspark.sql import functions as fn

    if isinstance(target, delta.DecimalType):
        form = string.rlike(_DECIMAL)
        return form & (_fraction_digits(string) <= target.scale) if exact else form
    if target in (delta.FLOAT, delta.DOUBLE):
        form = string.rlike(_DOUBLE)
        has_digits = string.rlike("[0-9]")
        beyond = has_digits & fn.abs(value).eqNullSafe(fn.lit(float("inf")))
        vanished = string.rlike(r"^[^eE]*[1-9]") & (value == 0)
        return form & ~beyond & ~vanished if exact else form
    if not isinstance(target, delta.PrimitiveType):
        return None
    pattern = (_EXACT_FORMS if exact else _FORMS).get(target)
    return None if pattern is None else string.rlike(pattern)


def _fraction_digits(string: Column) -> Column:
    """How many digits after the decimal point a number needs; arbitrary for a string that is not a number."""
    from pyspark.sql import functions as fn

    whole, fraction, exponent = (fn.regexp_extract(string, _PARTS, group) for group in (1, 2, 3))
    digits = fn.concat(whole, fraction)
    significant = fn.rtrim(digits, fn.lit("0"))
    zeros = fn.length(digits) - fn.length(significant)
    needed = fn.length(fraction) - fn.coalesce(exponent.try_cast("int"), fn.lit(0)) - zeros
    return fn.when(significant == "", fn.lit(0)).otherwise(needed)
