"""Operators on Arrow data: common types, comparison in Spark's order, checked arithmetic, casts.

Floating-point numbers have a total order here: NaN equals NaN and is greater than everything else.
Arithmetic never wraps around: overflow and division by zero are errors, as in Spark's ANSI mode.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import ArithmeticOperator, ComparisonOperator
from delta_core.schema.arrow import TIMESTAMP_ARROW
from delta_core.schema.arrow_values import ARROW_FALSE

Operand = Any
"""A pyarrow Array, ChunkedArray or Scalar."""

_PLAIN = {
    ComparisonOperator.EQ: pc.equal,
    ComparisonOperator.NE: pc.not_equal,
    ComparisonOperator.LT: pc.less,
    ComparisonOperator.LE: pc.less_equal,
    ComparisonOperator.GT: pc.greater,
    ComparisonOperator.GE: pc.greater_equal,
}
_MIRRORED = {
    ComparisonOperator.LT: ComparisonOperator.GT,
    ComparisonOperator.LE: ComparisonOperator.GE,
    ComparisonOperator.GT: ComparisonOperator.LT,
    ComparisonOperator.GE: ComparisonOperator.LE,
}
# The greatest double has 309 digits before the point, and a decimal has at most 38 after it.
_ALL_DIGITS = Context(prec=400, rounding=ROUND_HALF_UP)
_MOST_DIGITS_128 = 38
_OF_NULLS = {ArithmeticOperator.DIVIDE: pa.float64()}
# Not pa.scalar: it imports pandas where pandas is installed, and importing this module must stay cheap.
_NULL = pa.nulls(1, pa.bool_())[0]


def mirrored(operator: ComparisonOperator) -> ComparisonOperator:
    """The operator with its sides exchanged."""
    return _MIRRORED.get(operator, operator)


def compare(operator: ComparisonOperator, left: Operand, right: Operand) -> Operand:
    """`left operator right` with SQL's treatment of nulls."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return _compare_with_null(operator, left, right)
    left, right = unify(left, right)
    if operator == ComparisonOperator.EQ_NULL_SAFE:
        equal = compare(ComparisonOperator.EQ, left, right)
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(pc.fill_null(equal, ARROW_FALSE), both_null)
    if pa.types.is_floating(left.type):
        return _compare_floats(operator, left, right)
    return _PLAIN[operator](left, right)


def unify(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Both operands in the narrowest type that holds the values of both."""
    target = common_type(left.type, right.type)
    return convert(left, target), convert(right, target)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type in which values of two types are compared.

    Raises:
        ExpressionError: the types have no common type.
    """
    if left == right:
        return left
    types = pa.types
    if types.is_null(left) or types.is_null(right):
        return right if types.is_null(left) else left
    if types.is_floating(left) or types.is_floating(right):
        if _is_number(left) and _is_number(right):
            return pa.float64()
    elif types.is_integer(left) and types.is_integer(right):
        return left if left.bit_width >= right.bit_width else right
    elif _is_number(left) and _is_number(right):
        return _common_decimal(left, right)
    elif types.is_date(left) and types.is_timestamp(right):
        return right
    elif types.is_timestamp(left) and types.is_date(right):
        return left
    elif types.is_timestamp(left) and types.is_timestamp(right):
        return TIMESTAMP_ARROW
    raise ExpressionError(
        f"Values of type {left} and {right} cannot be compared or combined.",
        cause="Neither type can hold the values of the other.",
        fix="CAST one side to the type of the other.",
    )


def convert(value: Operand, target: pa.DataType) -> Operand:
    """Convert an operand to a type from `common_type`; only integers near 2^63 may change their value."""
    source = value.type
    if source == target:
        return value
    if pa.types.is_decimal(target) and pa.types.is_integer(source):
        return pc.cast(pc.cast(value, pa.decimal256(20, 0)), target)
    if pa.types.is_decimal(source) and pa.types.is_floating(target):
        return _nearest_float(value, target)
    # Integers beyond 2^53 round when compared with floating-point numbers, as in Spark.
    return pc.cast(value, target, safe=False)


def arithmetic(operator: ArithmeticOperator, left: Operand, right: Operand) -> Operand:
    """`left operator right` on numbers.

    Raises:
        ExpressionError: a result does not fit its type, or a divisor is zero.
    """
    if operator == ArithmeticOperator.MULTIPLY and pa.types.is_decimal(common_type(left.type, right.type)):
        # The scale of the product is the sum of both scales, so neither side is rescaled.
        left, right = (_exact_decimal(side) for side in (left, right))
    else:
        left, right = unify(left, right)
        if pa.types.is_decimal128(left.type) and left.type.precision == _MOST_DIGITS_128:
            # Arrow widens the type of a sum by one digit, even where the values do not need it.
            left, right = (_exact_decimal(side) for side in (left, right))
    if pa.types.is_null(left.type):
        return pc.cast(_nulls(left, right), _OF_NULLS.get(operator, pa.int32()))
    if operator == ArithmeticOperator.DIVIDE:
        left, right = (convert(side, pa.float64()) for side in (left, right))
    if operator in (ArithmeticOperator.DIVIDE, ArithmeticOperator.MODULO):
        _refuse_zero_division(left, right)
    try:
        match operator:
            case ArithmeticOperator.ADD:
                return pc.add_checked(left, right)
            case ArithmeticOperator.SUBTRACT:
                return pc.subtract_checked(left, right)
            case ArithmeticOperator.MULTIPLY:
                return pc.multiply_checked(left, right)
            case ArithmeticOperator.DIVIDE:
                return pc.divide(left, right)
            case ArithmeticOperator.MODULO:
                return _modulo(left, right)
    except pa.ArrowInvalid as error:
        raise ExpressionError(
            f"The result of {operator} does not fit its type {left.type}.",
            cause=str(error),
            fix="CAST the operands to a wider type.",
        ) from error


def cast_value(value: Operand, target: pa.DataType) -> Operand:
    """`CAST(value AS target)`.

    Raises:
        ExpressionError: a value cannot be represented in the target type.
    """
    source = value.type
    types = pa.types
    try:
        if source == target or types.is_null(source):
            return pc.cast(value, target)
        if types.is_string(source):
            trimmed = pc.utf8_trim_whitespace(value)
            if types.is_integer(target):
                _require_decimal_digits(trimmed)
            return pc.cast(pc.utf8_lower(trimmed) if types.is_boolean(target) else trimmed, target)
        if types.is_boolean(target):
            return pc.not_equal(value, convert(pa.scalar(0), source))
        if types.is_boolean(source) and not types.is_string(target):
            return convert(pc.cast(value, pa.int32()), target)
        if types.is_floating(source) and types.is_integer(target):
            return pc.cast(pc.trunc(value), target)
        if types.is_floating(source) and types.is_decimal(target):
            return _shortest_decimal(value, target)
        if types.is_decimal(source) and types.is_integer(target):
            return pc.cast(pc.trunc(value), target)
        if types.is_decimal(source) and types.is_decimal(target) and target.scale < source.scale:
            # Rounded up, 9.99 needs one digit more than its own type holds.
            wider = pc.cast(value, pa.decimal256(source.precision + 1, source.scale))
            return pc.cast(pc.round(wider, target.scale, "half_towards_infinity"), target)
        if types.is_decimal(target) and types.is_integer(source):
            return convert(value, target)
        if types.is_decimal(source) and types.is_floating(target):
            return _nearest_float(value, target)
        if types.is_timestamp(source) and types.is_timestamp(target):
            return convert(value, target)
        if types.is_decimal(source) and types.is_string(target):
            return _written_out(value)
        return pc.cast(value, target, safe=not types.is_floating(target))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ExpressionError(
            f"A value of type {source} cannot be cast to {target}.",
            cause=str(error),
            fix="Filter out such rows first, or cast to another type.",
        ) from error


def _require_decimal_digits(strings: Operand) -> None:
    """Refuse hexadecimal digits: Arrow reads 0x10 as 16, Spark does not."""
    if pc.any(pc.match_substring_regex(strings, "[xX]")).as_py():
        raise pa.ArrowInvalid("a string is not an integer in decimal digits")


def _written_out(value: Operand) -> Operand:
    """Decimals with all of their digits, as Spark writes them; Arrow would write 0E-10."""
    if isinstance(value, pa.Scalar):
        return pa.scalar(None if value.as_py() is None else f"{value.as_py():f}", pa.string())
    encoded = value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
    encoded = encoded.dictionary_encode()
    strings = [None if one is None else f"{one:f}" for one in encoded.dictionary.to_pylist()]
    return pa.array(strings, pa.string()).take(encoded.indices)


def _is_number(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type))


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scales, integrals = [], []
    for side in (left, right):
        scale = side.scale if pa.types.is_decimal(side) else 0
        precision = side.precision if pa.types.is_decimal(side) else 20
        scales.append(scale)
        integrals.append(precision - scale)
    scale = max(scales)
    precision = max(integrals) + scale
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(min(precision, 76), scale)


def _exact_decimal(value: Operand) -> Operand:
    if pa.types.is_integer(value.type):
        return pc.cast(value, pa.decimal256(20, 0))
    return pc.cast(value, pa.decimal256(value.type.precision, value.type.scale))


def _nearest_float(value: Operand, target: pa.DataType) -> Operand:
    """Decimals as floating-point numbers; Arrow's own cast is off by one digit for some, such as 0.0319."""
    return pc.cast(pc.cast(value, pa.string()), target)


def _shortest_decimal(value: Operand, target: pa.DataType) -> Operand:
    """Floating-point numbers as decimals, rounded from the shortest decimal form of each, as Spark does.

    Arrow's own cast takes all the digits of the double: for 0.1 those are 0.1000000000000000055...
    """
    wide = _as_array(pc.cast(value, pa.float64()))
    if pc.any(pc.invert(pc.is_finite(wide))).as_py():
        raise pa.ArrowInvalid("NaN and the infinities have no decimal value")
    unit = Decimal(1).scaleb(-target.scale)
    numbers = [
        None if number is None else Decimal(repr(number)).quantize(unit, context=_ALL_DIGITS)
        for number in wide.to_pylist()
    ]
    decimals = pa.array(numbers, target)
    return decimals[0] if isinstance(value, pa.Scalar) else decimals


def _as_array(value: Operand) -> Operand:
    return pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value


def _compare_with_null(operator: ComparisonOperator, left: Operand, right: Operand) -> Operand:
    if operator == ComparisonOperator.EQ_NULL_SAFE:
        return pc.and_(pc.is_null(left), pc.is_null(right))
    return _nulls(left, right)


def _nulls(left: Operand, right: Operand) -> Operand:
    lengths = [len(side) for side in (left, right) if not isinstance(side, pa.Scalar)]
    return pa.nulls(lengths[0], pa.bool_()) if lengths else _NULL


def _compare_floats(operator: ComparisonOperator, left: Operand, right: Operand) -> Operand:
    if isinstance(left, pa.Scalar) and not isinstance(right, pa.Scalar):
        return _compare_floats(mirrored(operator), right, left)
    plain = _PLAIN[operator](left, right)
    if _is_plain_number(right):
        # Only > and >= can be true for a NaN in the left operand.
        if operator in (ComparisonOperator.GT, ComparisonOperator.GE):
            return pc.or_kleene(plain, pc.is_nan(left))
        return plain
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    match operator:
        case ComparisonOperator.EQ:
            return pc.or_kleene(plain, pc.and_kleene(left_nan, right_nan))
        case ComparisonOperator.NE:
            return pc.and_kleene(plain, pc.invert(pc.and_kleene(left_nan, right_nan)))
        case ComparisonOperator.LT:
            return pc.or_kleene(plain, _both(pc.invert(left_nan), right_nan))
        case ComparisonOperator.LE:
            return pc.or_kleene(plain, _both(right_nan, pc.is_valid(left)))
        case ComparisonOperator.GT:
            return pc.or_kleene(plain, _both(left_nan, pc.invert(right_nan)))
        case _:
            return pc.or_kleene(plain, _both(left_nan, pc.is_valid(right)))


def _both(left: Operand, right: Operand) -> Operand:
    """`left AND right`, null when either is null: for the operands of a comparison, not of a connective."""
    return pc.and_(left, right)


def _is_plain_number(value: Operand) -> bool:
    return isinstance(value, pa.Scalar) and value.is_valid and value.as_py() == value.as_py()


def _refuse_zero_division(left: Operand, right: Operand) -> None:
    zero = pc.equal(right, pc.cast(pa.scalar(0), right.type))
    offending = pc.and_kleene(pc.fill_null(zero, ARROW_FALSE), pc.is_valid(left))
    any_zero = offending.as_py() if isinstance(offending, pa.Scalar) else pc.any(offending).as_py()
    if any_zero:
        raise ExpressionError(
            "A division by zero.",
            cause="The divisor of a row is zero.",
            fix="Exclude such rows in an earlier filter, before the division.",
        )


def _modulo(left: Operand, right: Operand) -> Operand:
    if pa.types.is_floating(left.type):
        return _float_modulo(left, right)
    # Arrow divides integers towards zero, so the remainder has the sign of the dividend, as in Spark.
    # The most negative integer divided by -1 would overflow, although its remainder is 0.
    one = pc.cast(pa.scalar(1), right.type)
    divisor = pc.if_else(pc.equal(right, pc.cast(pa.scalar(-1), right.type)), one, right)
    safe = pc.if_else(pc.equal(divisor, pc.cast(pa.scalar(0), right.type)), one, divisor)
    return pc.subtract(left, pc.multiply(pc.divide(left, safe), divisor))


def _float_modulo(left: Operand, right: Operand) -> Operand:
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    sides = [
        side.as_py()
        if isinstance(side, pa.Scalar)
        else side.to_numpy(zero_copy_only=False)
        if isinstance(side, pa.Array)
        else side.to_numpy()
        for side in (left, right)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        result = np.fmod(
            *(
                np.asarray(np.nan if side is None else side, dtype=left.type.to_pandas_dtype())
                for side in sides
            )
        )
    if isinstance(valid, pa.Scalar):
        return pa.scalar(float(result) if valid.as_py() else None, left.type)
    mask = np.logical_not(pa.array(valid.to_pylist(), pa.bool_()).to_numpy(zero_copy_only=False))
    return pa.array(np.broadcast_to(result, mask.shape), left.type, mask=mask, from_pandas=False)
