"""Text as a value of a type; text that the type would round or cut is no value of it."""

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


def cast_string(text: Column, wanted: delta.DataType, *, exact: bool) -> tuple[Column, Column]:
    """The text as a value of `wanted`, and whether it is no text of that type.

    Args:
        text: a column of strings. White space around a value is none of it.
        wanted: a primitive type.
        exact: text is no value of the type when it has digits that a decimal would round, a time of day or a
            zone that a date or a timestamp without one would drop, or parts of a microsecond. A fraction
            that a float or a double cannot have exactly is rounded as anywhere; a number beyond them is none.

    Returns:
        The value, null where there is none; and a boolean that is true where text is there and no value.
    """
    from pyspark.sql import functions as fn

    value = text.try_cast(to_spark_type(wanted))
    kept = _is_kept(text, value, wanted) if exact else None
    if kept is not None:
        value = fn.when(kept, value)
    return value, text.isNotNull() & value.isNull()


def _is_kept(text: Column, value: Column, wanted: delta.DataType) -> Column | None:
    """Whether the type keeps all that the text says; None for types that refuse other text themselves."""
    from pyspark.sql import functions as fn

    if isinstance(wanted, delta.DecimalType):
        return _fraction_digits(text) <= wanted.scale
    if wanted in (delta.FLOAT, delta.DOUBLE):
        has_digits = text.rlike(r"\d")
        beyond = has_digits & fn.abs(value).eqNullSafe(fn.lit(float("inf")))
        vanished = text.rlike(r"^[^eE]*[1-9]") & (value == 0)
        return text.rlike(_DOUBLE) & ~beyond & ~vanished
    if wanted == delta.DATE:
        return ~text.rlike(_TIME_OF_DAY)
    if wanted == delta.TIMESTAMP:
        return ~text.rlike(_BEYOND_MICROSECONDS) & ~text.rlike(_TIME_ALONE)
    if wanted == delta.TIMESTAMP_NTZ:
        return ~text.rlike(_BEYOND_MICROSECONDS) & ~text.rlike(_TIME_ALONE) & ~text.rlike(_ZONE)
    return None


def _fraction_digits(text: Column) -> Column:
    """How many digits after the point a number needs; of text that is no number, something."""
    from pyspark.sql import functions as fn

    whole, fraction, exponent = (fn.regexp_extract(text, _NUMBER, group) for group in (1, 2, 3))
    digits = fn.concat(whole, fraction)
    significant = fn.rtrim(digits, fn.lit("0"))
    zeros = fn.length(digits) - fn.length(significant)
    needed = fn.length(fraction) - fn.coalesce(exponent.try_cast("int"), fn.lit(0)) - zeros
    return fn.when(significant == "", fn.lit(0)).otherwise(needed)
