"""Values in a suite, converted to the type of the column that they are compared with.

A suite is JSON, which has no dates and no exact decimals, so a string can represent a value of the column's
type. A value that cannot be converted is refused. The column's values are never converted instead, because
engines convert them differently.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

MISSING_TYPES: Final = (FLOAT, DOUBLE)
"""Types with NaN, which counts as a missing value."""

_INTEGER_BITS: Final[dict[DataType, int]] = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_MOMENTS: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_WIDE: Final = Context(prec=400)
_MAX_EXPONENT: Final = 320


class InapplicableError(ValueError):
    """An expectation does not apply to its column. The message is the reason."""


def is_exact(data_type: DataType) -> bool:
    """Whether the type's values are integers or decimals."""
    return data_type in _INTEGER_BITS or isinstance(data_type, DecimalType)


def is_number(data_type: DataType) -> bool:
    """Whether the type's values are numbers."""
    return is_exact(data_type) or data_type in MISSING_TYPES


def is_moment(data_type: DataType) -> bool:
    """Whether the type's values are dates or times."""
    return data_type in _MOMENTS


def typed_value(value: Any, data_type: DataType) -> Any:
    """A suite's value in the column's type: Decimal for exact numbers, float for other numbers.

    Raises:
        InapplicableError: the value cannot be converted.
    """
    if is_number(data_type):
        return exact_number(value) if is_exact(data_type) else _floating(value, data_type)
    if is_moment(data_type):
        return moment(value, data_type)
    if data_type == BOOLEAN:
        truth = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
        if isinstance(truth, bool):
            return truth
    if data_type == STRING and isinstance(value, str):
        return value
    raise InapplicableError(
        f"The expectation cannot compare a column of the type {data_type} with {value!r}."
    )


def exact_number(value: Any) -> Decimal:
    """A number, or a string with a number, as an exact decimal. A float uses its shortest decimal form.

    Raises:
        InapplicableError: the value is not a number, or is infinite or NaN.
    """
    string = repr(value) if isinstance(value, float) else str(value).strip()
    if not isinstance(value, bool) and isinstance(value, (int, float, Decimal, str)) and "_" not in string:
        try:
            number = Decimal(string)
        except InvalidOperation:
            number = Decimal("NaN")
        if number.is_finite() and abs(number.adjusted()) <= _MAX_EXPONENT:
            return number
    raise InapplicableError(f"{value!r} is not a number.")


def moment(value: Any, data_type: DataType) -> datetime.date:
    """A date or time of a column's type. A time without a zone is UTC.

    Raises:
        InapplicableError: the value is not a date or time.
    """
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError as error:
            raise InapplicableError(
                f"The expectation cannot compare a column of the type {data_type} with {value!r}: {error}. "
                "Quote timestamps and dates, such as '2024-05-01T12:00:00+00:00' and '2024-05-01'."
            ) from error
    if not isinstance(value, datetime.date):
        raise InapplicableError(
            f"The expectation cannot compare a column of the type {data_type} with {value!r}."
        )
    converted = (
        value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    )
    if data_type == DATE:
        return converted.date()
    if data_type == TIMESTAMP_NTZ:
        return converted.replace(tzinfo=None)
    return (
        converted.replace(tzinfo=datetime.UTC)
        if converted.tzinfo is None
        else converted.astimezone(datetime.UTC)
    )


def _floating(value: Any, data_type: DataType) -> float:
    if isinstance(value, float):
        number = value
    else:
        try:
            number = float(exact_number(value))
        except InapplicableError:
            raise InapplicableError(
                f"The expectation cannot compare a column of the type {data_type} with {value!r}."
            ) from None
    if math.isnan(number):
        raise InapplicableError(
            f"The expectation cannot compare a column of the type {data_type} with NaN, a missing value."
        )
    return number + 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A lower and an upper bound in the column's type. None means no bound.

    Attributes:
        strict_low, strict_high: whether the bound is exclusive.
        empty: whether no value of the type is within the bounds.
    """

    low: Any = None
    high: Any = None
    strict_low: bool = False
    strict_high: bool = False
    empty: bool = False

    def hold(self, values: pa.Array) -> pa.Array:
        """Whether each value is within the bounds; false for null."""
        if self.empty:
            return pc.and_kleene(pa.scalar(False), pc.is_valid(values))
        converted = pc.is_valid(values)
        for bound, test in (
            (self.low, pc.greater if self.strict_low else pc.greater_equal),
            (self.high, pc.less if self.strict_high else pc.less_equal),
        ):
            if bound is not None:
                converted = pc.and_kleene(converted, test(values, bound))
        return converted


def column_bounds(low: Any, high: Any, data_type: DataType, *, strict_low: bool, strict_high: bool) -> Bounds:
    """Exact bounds for a column of this type.

    A bound between two values of the type becomes the nearest value within the bounds, so no row's value is
    rounded.

    Raises:
        InapplicableError: a bound cannot be converted to the column's type, or the type has no order.
    """
    if not (is_number(data_type) or is_moment(data_type)):
        raise InapplicableError(
            f"The column has the type {data_type}, whose values cannot be compared with bounds."
        )
    if low is None and high is None:
        raise InapplicableError("The expectation needs the argument `min_value` or `max_value`.")
    lower = None if low is None else typed_value(low, data_type)
    upper = None if high is None else typed_value(high, data_type)
    if lower is not None and upper is not None and lower > upper:
        raise InapplicableError("The argument `min_value` is greater than `max_value`.")
    arrow = type_to_arrow(data_type)
    if is_exact(data_type):
        return _exact_bounds(lower, upper, data_type, strict_low=strict_low, strict_high=strict_high)
    if data_type in MISSING_TYPES:
        arrow = pa.float64()  # a float is compared as a double
    return Bounds(
        low=None if lower is None else pa.scalar(lower, arrow),
        high=None if upper is None else pa.scalar(upper, arrow),
        strict_low=strict_low,
        strict_high=strict_high,
    )


def _exact_bounds(
    lower: Decimal | None, upper: Decimal | None, data_type: DataType, *, strict_low: bool, strict_high: bool
) -> Bounds:
    """Bounds in units of the last digit, limited to the type's range."""
    minimum, maximum = _range(data_type)
    low = high = None
    if lower is not None:
        low = _units(lower, data_type, ROUND_CEILING)
        low += strict_low and low == _scaled(lower, data_type)
        if low > maximum:
            return Bounds(empty=True)
    if upper is not None:
        high = _units(upper, data_type, ROUND_FLOOR)
        high -= strict_high and high == _scaled(upper, data_type)
        if high < minimum:
            return Bounds(empty=True)
    if low is not None and high is not None and low > high:
        return Bounds(empty=True)
    return Bounds(
        low=None if low is None else _scalar(max(low, minimum), data_type),
        high=None if high is None else _scalar(min(high, maximum), data_type),
    )


def value_array(values: list[Any], data_type: DataType) -> pa.Array:
    """Typed values (`typed_value`) as an array, without values that the column's type cannot represent."""
    arrow = type_to_arrow(data_type)
    if is_exact(data_type):
        minimum, maximum = _range(data_type)
        units = [_units(value, data_type, ROUND_FLOOR) for value in values]
        return pa.array(
            [
                _scalar(unit, data_type).as_py()
                for unit, value in zip(units, values, strict=True)
                if unit == _scaled(value, data_type) and minimum <= unit <= maximum
            ],
            arrow,
        )
    if data_type in MISSING_TYPES:
        arrow = pa.float64()
    return pa.array(values, arrow)


def normalized_column(values: pa.Array) -> pa.Array:
    """A column prepared for evaluation: floating-point numbers as doubles, NaN as null, no negative zero."""
    if not pa.types.is_floating(values.type):
        return values
    doubles = values.cast(pa.float64())
    valid = np.asarray(pc.is_valid(doubles))
    numbers = np.asarray(pc.fill_null(doubles, 0.0)) + 0.0
    return pa.array(numbers, pa.float64(), mask=~valid | np.isnan(numbers))


def _range(data_type: DataType) -> tuple[int, int]:
    if isinstance(data_type, DecimalType):
        return -(10**data_type.precision) + 1, 10**data_type.precision - 1
    bits = _INTEGER_BITS[data_type]
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _scaled(value: Decimal, data_type: DataType) -> Decimal:
    scale = data_type.scale if isinstance(data_type, DecimalType) else 0
    return value.scaleb(scale, context=_WIDE)


def _units(value: Decimal, data_type: DataType, rounding: str) -> int:
    return int(_scaled(value, data_type).to_integral_value(rounding=rounding))


def _scalar(units: int, data_type: DataType) -> pa.Scalar:
    if not isinstance(data_type, DecimalType):
        return pa.scalar(units, type_to_arrow(data_type))
    return pa.scalar(Decimal(units).scaleb(-data_type.scale, context=_WIDE), type_to_arrow(data_type))
