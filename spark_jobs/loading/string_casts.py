"""Casts of strings to a type. A string that the type would round or truncate is not a value of the type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delta_core.schema import types as delta
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_NUMBER: Final = r"^\s*[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?\s*$"
_DOUBLE: Final = r"^\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity|nan))\s*$"
_TIME_OF_DAY: Final = r"\d[T ]\s*[^\s]*[^\s0:.]"
_BEYOND_MICROSECONDS: Final = r"\.\d{6}\d*[1-9]"
_TIME_ALONE: Final = r"^\s*T?\d{1,2}:"
_ZONE: Final = r":\d{1,2}(\.\d*)?\s*[^\s\d:.]"


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
    is_exact = _is_exact(string, value, target) if exact else None
    if is_exact is not None:
        value = fn.when(is_exact, value)
    return value, string.isNotNull() & value.isNull()


def _is_exact(string: Column, value: Column, target: delta.DataType) -> Column | None:
    """Whether the type represents the string exactly; None for a type whose cast refuses inexact strings."""
    from pyspark.sql import functions as fn

    if isinstance(target, delta.DecimalType):
        return _fraction_digits(string) <= target.scale
    if target in (delta.FLOAT, delta.DOUBLE):
        has_digits = string.rlike(r"\d")
        beyond = has_digits & fn.abs(value).eqNullSafe(fn.lit(float("inf")))
        vanished = string.rlike(r"^[^eE]*[1-9]") & (value == 0)
        return string.rlike(_DOUBLE) & ~beyond & ~vanished
    if target == delta.DATE:
        return ~string.rlike(_TIME_OF_DAY)
    if target == delta.TIMESTAMP:
        return ~string.rlike(_BEYOND_MICROSECONDS) & ~string.rlike(_TIME_ALONE)
    if target == delta.TIMESTAMP_NTZ:
        return ~string.rlike(_BEYOND_MICROSECONDS) & ~string.rlike(_TIME_ALONE) & ~string.rlike(_ZONE)
    return None


def _fraction_digits(string: Column) -> Column:
    """How many digits after the decimal point a number needs; arbitrary for a string that is not a number."""
    from pyspark.sql import functions as fn

    whole, fraction, exponent = (fn.regexp_extract(string, _NUMBER, group) for group in (1, 2, 3))
    digits = fn.concat(whole, fraction)
    significant = fn.rtrim(digits, fn.lit("0"))
    zeros = fn.length(digits) - fn.length(significant)
    needed = fn.length(fraction) - fn.coalesce(exponent.try_cast("int"), fn.lit(0)) - zeros
    return fn.when(significant == "", fn.lit(0)).otherwise(needed)
