"""Rounding as in Spark SQL: half up, based on the shortest decimal form of a number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.ast import Expression, Literal
from delta_core.schema.types import LONG, VOID, DataType, DecimalType

Operand = Any
"""A pyarrow Array, ChunkedArray or Scalar."""

_MOST_DIGITS = 38
# The greatest double has 309 digits before the point, and the least has 324 after it.
_ALL_DIGITS = Context(prec=800, rounding=ROUND_HALF_UP)


def round_type(types: Sequence[DataType], arguments: Sequence[Expression]) -> DataType:
    """The type of `round`; for decimals it has room for the digit that rounding up may add."""
    kind = types[0]
    if not isinstance(kind, DecimalType):
        return kind
    digits = arguments[1].value if len(arguments) > 1 and isinstance(arguments[1], Literal) else 0
    whole = kind.precision - kind.scale + 1
    if not isinstance(digits, int):
        return kind
    if digits < 0:
        return DecimalType(min(max(whole, 1 - digits), _MOST_DIGITS), 0)
    scale = min(kind.scale, digits)
    return DecimalType(min(whole + scale, _MOST_DIGITS), scale)


def whole_type(kind: DataType) -> DataType:
    """The type of `floor` and `ceil`."""
    if isinstance(kind, DecimalType):
        return DecimalType(min(kind.precision - kind.scale + 1, _MOST_DIGITS), 0)
    return VOID if kind == VOID else LONG


def round_half_up(arguments: Sequence[Operand]) -> Operand:
    """Round a number to `digits` digits after the point (0 by default); negative digits round before it.

    Raises:
        pa.ArrowInvalid: a result does not fit the type.
    """
    value = arguments[0]
    digits = arguments[1].as_py() if len(arguments) > 1 else 0
    kind = value.type
    if pa.types.is_null(kind):
        return value
    if digits is None:
        return pc.if_else(pc.is_null(value), pa.nulls(1, kind)[0], pa.nulls(1, kind)[0])
    if pa.types.is_integer(kind):
        return value if digits >= 0 else _rounded_integers(value, digits)
    if pa.types.is_decimal(kind):
        return _rounded_decimals(value, digits)
    return _rounded_floats(value, digits)


def floor(arguments: Sequence[Operand]) -> Operand:
    """The greatest integer not above the number. Raises pa.ArrowInvalid when it does not fit a long."""
    return _whole(arguments[0], "down")


def ceil(arguments: Sequence[Operand]) -> Operand:
    """The least integer not below the number. Raises pa.ArrowInvalid when it does not fit a long."""
    return _whole(arguments[0], "up")


def _whole(value: Operand, mode: str) -> Operand:
    kind = value.type
    if pa.types.is_null(kind):
        return value
    if pa.types.is_decimal(kind):
        target = pa.decimal128(min(kind.precision - kind.scale + 1, _MOST_DIGITS), 0)
        wide = pc.cast(value, pa.decimal256(kind.precision + 1, kind.scale))
        return pc.cast(pc.round(wide, 0, mode), target)
    if pa.types.is_integer(kind):
        return pc.cast(value, pa.int64())
    return pc.cast(pc.floor(value) if mode == "down" else pc.ceil(value), pa.int64())


def _rounded_integers(value: Operand, digits: int) -> Operand:
    if digits < -_MOST_DIGITS:
        return pc.multiply(value, pa.scalar(0, value.type))
    wide = pc.cast(value, pa.decimal256(_MOST_DIGITS + 2, 0))
    return pc.cast(pc.round(wide, digits, "half_towards_infinity"), value.type)


def _rounded_decimals(value: Operand, digits: int) -> Operand:
    kind = value.type
    whole = kind.precision - kind.scale + 1
    scale = min(kind.scale, max(digits, 0))
    precision = max(whole, 1 - digits) if digits < 0 else whole + scale
    target = pa.decimal128(min(precision, _MOST_DIGITS), scale)
    wide = pc.cast(value, pa.decimal256(kind.precision + 1, kind.scale))
    if digits < -kind.precision:
        return pc.cast(pc.multiply(pc.cast(value, pa.float64()), 0.0), target)
    if digits < kind.scale:
        wide = pc.round(wide, digits, "half_towards_infinity")
    return pc.cast(wide, target)


def _rounded_floats(value: Operand, digits: int) -> Operand:
    array = pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    encoded = array.dictionary_encode()
    unit = Decimal(1).scaleb(-max(min(digits, 400), -400))
    values = [None if number is None else _nearest(number, unit) for number in encoded.dictionary.to_pylist()]
    rounded = pa.array(values, array.type, from_pandas=False).take(encoded.indices)
    return rounded[0] if isinstance(value, pa.Scalar) else rounded


def _nearest(number: float, unit: Decimal) -> float:
    exact = Decimal(repr(number))
    if not exact.is_finite():
        return number
    # The result is never -0.0, as in Spark.
    return float(exact.quantize(unit, context=_ALL_DIGITS)) + 0.0
