"""Numeric operations as native Spark expressions with the same results in and out of ANSI mode.

An operation without a result (an overflow, a division by zero, a string that is not a number) is null here.
The module `predicates` makes such rows fail. Decimals are added, multiplied and compared exactly, so the
session's setting for the precision of decimal results has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import ArithmeticOperator, ComparisonOperator, Literal
from delta_core.expressions.literals import DATETIMES, FLOATING, INTEGRAL_RANGES
from delta_core.expressions.rounding import round_type, whole_type
from delta_core.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)
from spark_jobs.expressions import utc_times
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

MAX_DIGITS = 38
_DIGITS = dict(zip(INTEGRAL_RANGES, (3, 5, 10, 20), strict=True))
# Spark gives a sum one digit more than its operands. Beyond this scale it would shorten the fraction instead.
_SAFE_SCALE = 6
_INTEGRAL_ORDER = list(INTEGRAL_RANGES)


def common_type(left: DataType, right: DataType) -> DataType:
    """The type in which values of two types are compared: it can represent the values of both types.

    For two decimals, that type may need more than 38 digits. See `holds_all`.
    """
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if left in FLOATING or right in FLOATING:
        return DOUBLE
    if left in INTEGRAL_RANGES and right in INTEGRAL_RANGES:
        return max(left, right, key=_INTEGRAL_ORDER.index)
    if left in DATETIMES:
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    whole, scale = (max(sides) for sides in zip(_whole_and_scale(left), _whole_and_scale(right), strict=True))
    # A decimal type with more digits does not exist.
    return DecimalType(min(whole + scale, MAX_DIGITS), scale) if scale <= MAX_DIGITS else left


def holds_all(kind: DataType, *others: DataType) -> bool:
    """Whether the type `kind` can represent every value of the types `others`."""
    if not isinstance(kind, DecimalType):
        return True
    whole = max(_whole_and_scale(other)[0] for other in others)
    return whole + kind.scale <= kind.precision


def converted(value: Column, kind: DataType, target: DataType) -> Column:
    """A value of the type `kind`, cast to the common type `target`. The cast never fails."""
    if kind == target:
        return value
    if target == TIMESTAMP:
        return utc_times.as_instant(value, kind) if kind != VOID else value.cast(to_spark_type(target))
    if target == TIMESTAMP_NTZ:
        return utc_times.as_wall_clock(value, kind) if kind != VOID else value.cast(to_spark_type(target))
    return value.cast(to_spark_type(target))


def cast(value: Column, kind: DataType, target: DataType) -> Column:
    """`CAST(value AS target)`; null for a value that the target type cannot represent."""
    from pyspark.sql import functions as fn

    if kind in (target, VOID):
        return value.cast(to_spark_type(target))
    if kind == STRING:
        return utc_times.timestamp_of_string(value) if target == TIMESTAMP else _try_cast(value, target)
    if target == STRING:
        return plain_string(value, kind) if isinstance(kind, DecimalType) else value.cast("string")
    if kind in DATETIMES:
        return utc_times.date_of(value, kind) if target == DATE else converted(value, kind, target)
    if target == BOOLEAN:
        return value != fn.lit(0).cast(to_spark_type(kind))
    if kind == BOOLEAN:
        value = value.cast("int")
    return value.cast(to_spark_type(target)) if target in FLOATING else _try_cast(value, target)


def cast_may_fail(kind: DataType, target: DataType) -> bool:
    """Whether some values of the type `kind` cannot be represented in the type `target`."""
    if kind in (target, VOID) or target in (BOOLEAN, *FLOATING):
        return kind == STRING
    if target in INTEGRAL_RANGES and kind in INTEGRAL_RANGES:
        return INTEGRAL_RANGES[target] < INTEGRAL_RANGES[kind]
    return not (target == STRING or kind in DATETIMES)


def arithmetic_may_fail(operator: ArithmeticOperator, kind: DataType) -> bool:
    """Whether an operation on the type `kind` can lack a result: in floating point only a division can."""
    divides = operator in (ArithmeticOperator.DIVIDE, ArithmeticOperator.MODULO)
    return divides or kind not in FLOATING


def arithmetic(
    operator: ArithmeticOperator, left: tuple[Column, DataType], right: tuple[Column, DataType]
) -> tuple[Column, DataType]:
    """`left operator right` on numbers, and its type. Null when the operation has no result.

    Raises:
        ExpressionError: the result of two decimals has more digits than Spark supports.
    """
    from pyspark.sql import functions as fn

    (a, a_kind), (b, b_kind) = left, right
    kind = common_type(a_kind, b_kind)
    if isinstance(kind, DecimalType):
        return _decimal_arithmetic(operator, left, right, kind)
    if operator == ArithmeticOperator.DIVIDE:
        kind = DOUBLE
    a, b = converted(a, a_kind, kind), converted(b, b_kind, kind)
    match operator:
        case ArithmeticOperator.DIVIDE:
            return fn.try_divide(a, b), kind
        case ArithmeticOperator.MODULO:
            return a % fn.when(b != fn.lit(0).cast(to_spark_type(kind)), b), kind
    if kind in FLOATING:
        operators: dict[ArithmeticOperator, Callable[[], Column]] = {
            ArithmeticOperator.ADD: lambda: a + b,
            ArithmeticOperator.SUBTRACT: lambda: a - b,
            ArithmeticOperator.MULTIPLY: lambda: a * b,
        }
        return operators[operator](), kind
    return _try_operator(operator)(a, b), kind


def _decimal_arithmetic(
    operator: ArithmeticOperator,
    left: tuple[Column, DataType],
    right: tuple[Column, DataType],
    common: DecimalType,
) -> tuple[Column, DataType]:
    (a, a_kind), (b, b_kind) = left, right
    if operator == ArithmeticOperator.MULTIPLY:
        (a_whole, a_scale), (b_whole, b_scale) = _whole_and_scale(a_kind), _whole_and_scale(b_kind)
        a_digits, b_digits = _operand_digits(a_whole + a_scale, b_whole + b_scale)
        if a_digits < a_scale or b_digits < b_scale:
            raise _too_many_digits(operator, a_kind, b_kind)
        sides = DecimalType(a_digits, a_scale), DecimalType(b_digits, b_scale)
        result = DecimalType(a_digits + b_digits + 1, a_scale + b_scale)
    else:
        whole, scale = max(_whole_and_scale(side)[0] for side in (a_kind, b_kind)), common.scale
        max_scale = MAX_DIGITS if scale <= _SAFE_SCALE else MAX_DIGITS - 1
        if scale > max_scale:
            raise _too_many_digits(operator, a_kind, b_kind)
        sides = (DecimalType(min(whole + scale, max_scale), scale),) * 2
        result = DecimalType(min(sides[0].precision + 1, MAX_DIGITS), scale)
    value = _try_operator(operator)(_try_cast(a, sides[0]), _try_cast(b, sides[1]))
    return value, result


def _operand_digits(left: int, right: int) -> tuple[int, int]:
    """How many digits the operands of a product may have so that the product is exact."""
    spare = MAX_DIGITS - 1
    if left + right <= spare:
        return left, right
    if min(left, right) > spare // 2:
        return spare - spare // 2, spare // 2
    return (left, spare - left) if left < right else (spare - right, right)


def _too_many_digits(operator: ArithmeticOperator, left: DataType, right: DataType) -> ExpressionError:
    return ExpressionError(
        f"The operation {operator} of {left} and {right} is not supported on Spark.",
        cause=f"The result has more than {MAX_DIGITS} digits, and Spark would round it.",
        fix="CAST the operands to decimals with fewer digits, or AS DOUBLE.",
    )


def _try_operator(operator: ArithmeticOperator) -> Callable[[Column, Column], Column]:
    from pyspark.sql import functions as fn

    return {
        ArithmeticOperator.ADD: fn.try_add,
        ArithmeticOperator.SUBTRACT: fn.try_subtract,
        ArithmeticOperator.MULTIPLY: fn.try_multiply,
    }[operator]


def compare_decimals(
    operator: ComparisonOperator, left: tuple[Column, DataType], right: tuple[Column, DataType]
) -> Column:
    """A comparison of numbers without a common type: by their whole parts, then by their fractions."""
    from pyspark.sql import functions as fn

    (a, a_rest), (b, b_rest) = (_whole_and_rest(*side) for side in (left, right))
    equal = (a == b) & (a_rest == b_rest)
    match operator:
        case ComparisonOperator.EQ:
            return equal
        case ComparisonOperator.NE:
            return ~equal
        case ComparisonOperator.LT:
            return (a < b) | ((a == b) & (a_rest < b_rest))
        case ComparisonOperator.GT:
            return (a > b) | ((a == b) & (a_rest > b_rest))
        case ComparisonOperator.LE:
            return (a < b) | ((a == b) & (a_rest <= b_rest))
        case ComparisonOperator.GE:
            return (a > b) | ((a == b) & (a_rest >= b_rest))
        case _:
            both_null = left[0].isNull() & right[0].isNull()
            return fn.coalesce(equal, fn.lit(False)) | both_null


def _whole_and_rest(value: Column, kind: DataType) -> tuple[Column, Column]:
    from pyspark.sql import functions as fn

    whole, scale = _whole_and_scale(kind)
    exact = converted(value, kind, DecimalType(min(whole + scale, MAX_DIGITS), scale))
    rest = fn.pmod(exact, fn.lit(1).cast("decimal(1,0)"))
    return fn.floor(exact).cast("decimal(38,0)"), rest.cast("decimal(38,38)")


def plain_string(value: Column, kind: DecimalType) -> Column:
    """A decimal as a string with all its digits. Outside of ANSI mode Spark casts some to 0E-10."""
    from pyspark.sql import functions as fn

    scale = kind.scale
    if scale <= _SAFE_SCALE or scale >= MAX_DIGITS - 1:
        return value.cast("string")
    size = fn.abs(value)
    # Spark writes a number above 1 without an exponent: add 1, then replace the leading digit with 0.
    above = fn.when(size < 1, size).cast(f"decimal({scale + 1},{scale})") + fn.lit(1).cast("decimal(1,0)")
    digits = fn.concat(fn.lit("0"), fn.substring(above.cast("string"), 2, MAX_DIGITS + 2))
    small = fn.concat(fn.when(value < 0, fn.lit("-")).otherwise(fn.lit("")), digits)
    return fn.when(size < 1, small).otherwise(value.cast("string"))


def absolute(value: Column, kind: DataType) -> Column:
    """The absolute value; null for the least integer, whose absolute value does not fit its type."""
    from pyspark.sql import functions as fn

    if kind not in INTEGRAL_RANGES:
        return fn.abs(value)
    zero = fn.lit(0).cast(to_spark_type(kind))
    return fn.when(value < zero, fn.try_subtract(zero, value)).otherwise(value)


def rounded(value: Column, kind: DataType, digits: int) -> tuple[Column, DataType]:
    """SQL's `round` to `digits` decimal places, and its type. Null when the result does not fit the type."""
    from pyspark.sql import functions as fn

    if kind in INTEGRAL_RANGES:
        if digits >= 0:
            return value, kind
        if digits < -MAX_DIGITS:
            return value * fn.lit(0).cast(to_spark_type(kind)), kind
        exact = fn.round(value.cast("decimal(20,0)"), digits)
        return _try_cast(exact, kind), kind
    if isinstance(kind, DecimalType):
        target = round_type([kind], [Literal(None), Literal(digits)])
        if digits < -kind.precision:
            return fn.when(value.isNotNull(), fn.lit(0)).cast(to_spark_type(target)), target
        return fn.round(value, digits).try_cast(to_spark_type(target)), target
    return fn.round(value, digits), kind


def whole(name: str, value: Column, kind: DataType) -> tuple[Column, DataType]:
    """SQL's `floor` or `ceil` (`name`), and its type. Null when the result does not fit a long."""
    from pyspark.sql import functions as fn

    run = fn.floor if name == "floor" else fn.ceil
    target = whole_type(kind)
    if kind in FLOATING:
        wide = value.cast("double")
        limit = fn.lit(float(2**63))
        return fn.when((wide >= -limit) & (wide < limit), run(wide)), target
    if isinstance(kind, DecimalType):
        return run(value).try_cast(to_spark_type(target)), target
    return value.cast("bigint"), target


def _try_cast(value: Column, target: DataType) -> Column:
    return value.try_cast(to_spark_type(target))


def _whole_and_scale(kind: DataType) -> tuple[int, int]:
    """The number of digits before and after the decimal point of a decimal or integer type."""
    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale, kind.scale
    return _DIGITS[kind], 0
