"""Constants: their types, their conversion to a column's type, and their Arrow values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Literal
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.arrow_values import arrow_scalar
from delta_core.schema.partition_values import parse_timestamp, rescale
from delta_core.schema.types import (
    BINARY,
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
    VOID,
    DataType,
    DecimalType,
)

INTEGRAL_RANGES: dict[DataType, int] = {BYTE: 2**7, SHORT: 2**15, INTEGER: 2**31, LONG: 2**63}
FLOATING = frozenset({FLOAT, DOUBLE})
DATETIMES = frozenset({DATE, TIMESTAMP, TIMESTAMP_NTZ})

_SPECIAL_FLOATS = {"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}


def is_numeric(data_type: DataType) -> bool:
    """Integers, floating-point numbers and decimals."""
    return data_type in INTEGRAL_RANGES or data_type in FLOATING or isinstance(data_type, DecimalType)


def literal_type(literal: Literal) -> DataType:
    """The type that Spark SQL gives a constant without context."""
    if literal.data_type is not None:
        return literal.data_type
    match literal.value:
        case None:
            return VOID
        case bool():
            return BOOLEAN
        case int() as value:
            for data_type in (INTEGER, LONG):
                if -INTEGRAL_RANGES[data_type] <= value < INTEGRAL_RANGES[data_type]:
                    return data_type
            return _decimal_type(Decimal(value))
        case float():
            return DOUBLE
        case Decimal() as value:
            return _decimal_type(value)
        case str():
            return STRING
        case bytes():
            return BINARY
        case dt.datetime() as value:
            return TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP
        case dt.date():
            return DATE
    raise ExpressionError(
        f"{literal.value!r} cannot be a constant in an expression.",
        cause=f"Python's {type(literal.value).__name__} has no SQL type.",
        fix="Use None, a bool, number, string, bytes, date or datetime.",
    )


def convert_literal(literal: Literal, target: DataType, context: str) -> Literal:
    """The constant converted to `target`, as Spark converts a constant next to a column of that type.

    Strings are parsed as any type. Numbers are converted to a numeric type that holds them exactly; otherwise
    they stay as they are, and the comparison happens in a wider type.

    Args:
        literal: the constant.
        target: the column's type.
        context: the expression that contains the constant, for the message.

    Raises:
        ExpressionError: the string is not a value of the type.
    """
    value = literal.value
    source = literal_type(literal)
    if value is None or source == target:
        return Literal(value, target if value is None else source)
    if isinstance(value, str):
        return Literal(_from_string(value, target, context), target)
    if is_numeric(source) and is_numeric(target):
        return _fit_number(literal, source, target)
    return Literal(value, source)


def literal_scalar(literal: Literal) -> pa.Scalar:
    """The constant as an Arrow scalar."""
    data_type = literal_type(literal)
    target = type_to_arrow(data_type)
    value = literal.value
    if isinstance(value, Decimal) and isinstance(data_type, DecimalType):
        value = rescale(value, data_type.scale)
    try:
        return arrow_scalar(value, target)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ExpressionError(
            f"{literal.value!r} is not a value of type {data_type}.",
            cause=str(error),
            fix="Use a value of the column's type.",
        ) from error


def _decimal_type(value: Decimal) -> DecimalType:
    if not value.is_finite():
        raise ExpressionError(
            f"{value} cannot be a constant in an expression.",
            cause="Decimals are finite.",
            fix="Use float('nan') or float('inf') with a floating-point column.",
        )
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > 38:
        raise ExpressionError(
            f"{value} has more than 38 digits.", cause="No numeric type holds it.", fix="Use fewer digits."
        )
    return DecimalType(precision, scale)


def _fit_number(literal: Literal, source: DataType, target: DataType) -> Literal:
    value = literal.value
    assert isinstance(value, int | float | Decimal)
    if target in FLOATING and not isinstance(value, float):
        return Literal(float(value), DOUBLE)
    if target in INTEGRAL_RANGES and isinstance(value, int):
        limit = INTEGRAL_RANGES[target]
        return Literal(value, target if -limit <= value < limit else source)
    return Literal(value, source)


def _from_string(string: str, target: DataType, context: str) -> object:
    stripped = string.strip()
    try:
        if "_" in stripped and (
            target in INTEGRAL_RANGES or target in FLOATING or isinstance(target, DecimalType)
        ):
            raise ValueError("SQL does not allow _ in numbers, as Python does in 1_000")
        if target == BINARY:
            return string.encode()
        if target == BOOLEAN and stripped.lower() in ("true", "t", "yes", "y", "1"):
            return True
        if target == BOOLEAN and stripped.lower() in ("false", "f", "no", "n", "0"):
            return False
        if target in INTEGRAL_RANGES:
            value = int(stripped)
            if -INTEGRAL_RANGES[target] <= value < INTEGRAL_RANGES[target]:
                return value
        if target in FLOATING:
            number = float(stripped)
            if math.isfinite(number) or stripped.lower() in _SPECIAL_FLOATS:
                return number
        if isinstance(target, DecimalType):
            decimal = Decimal(stripped)
            if _decimal_type(decimal).scale <= target.scale:
                return decimal
        if target == DATE:
            return _parse_date_or_timestamp(stripped).date()
        if target == TIMESTAMP:
            return parse_timestamp(stripped, zone=dt.UTC)
        if target == TIMESTAMP_NTZ:
            return parse_timestamp(stripped)
    except (ValueError, InvalidOperation, OverflowError):
        pass
    raise ExpressionError(
        f"{string!r} is not of type {target}.",
        cause=f"It is compared or combined with {context}, which has type {target}.",
        fix=f"Write a constant of type {target}{_EXAMPLES.get(target, '')}.",
    )


def _parse_date_or_timestamp(string: str) -> dt.datetime:
    return parse_timestamp(string, zone=dt.UTC) if len(string) > 10 else parse_timestamp(string)


_EXAMPLES: dict[DataType, str] = {
    DATE: ", such as '2013-01-31'",
    TIMESTAMP: ", such as '2013-01-31 12:00:00' (UTC) or '2013-01-31T12:00:00+01:00'",
    TIMESTAMP_NTZ: ", such as '2013-01-31 12:00:00'",
    BOOLEAN: ": true or false",
}
