"""Resolved expressions as native Spark expressions with delta_core's semantics, in any session.

The result of SQL text depends on the session's settings: time zone, ANSI mode, and parsing of strings and
timestamps. A DataFrame keeps its expressions and may be used later with other settings. Therefore this module
generates no SQL text, makes every conversion explicit, and uses UTC for times.

A row for which an expression has no result (an overflow, a division by zero, a string that is not a number)
fails the query that uses the DataFrame, in ANSI mode and outside of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import (
    And,
    Arithmetic,
    Call,
    Cast,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.expressions.ast import Column as ColumnName
from delta_core.expressions.functions import FUNCTIONS
from delta_core.expressions.literals import FLOATING, INTEGRAL_RANGES, literal_scalar, literal_type
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import find_column
from delta_core.schema.types import (
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    StructType,
)
from spark_jobs.expressions import checked_numbers, utc_times
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MAX_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """A subexpression.

    Attributes:
        column: the value. When `may_fail`, null also represents a failure.
        kind: the type; `void` for a null without a type.
        leaves: the inputs of the value. When no input is null and the value is null, it has failed.
        may_fail: whether the value can fail.
    """

    column: Column
    kind: DataType
    leaves: tuple[Column, ...]
    may_fail: bool = False


def to_column(expression: Expression, schema: StructType) -> Column:
    """The expression as a column. A null without a type becomes a boolean null.

    Args:
        expression: the expression, resolved against `schema`.
        schema: the schema of the DataFrame's columns. An alias is a struct column of the aliased columns.

    Raises:
        ExpressionError: a constant is not a value of its type, or decimals have more digits than Spark
            supports.
    """
    value = _checked_value(expression, schema)
    return value.column.cast("boolean") if value.kind == VOID else value.column


def _checked_value(expression: Expression, schema: StructType) -> _Value:
    """The value of an expression. It raises an error in a row in which the expression has no result."""
    from pyspark.sql import functions as fn

    value = _value(expression, schema)
    if not value.may_fail:
        return value
    text = to_spark_sql(expression)
    shown = text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}..."
    failure = fn.raise_error(
        fn.lit(
            f"{shown} has no result for a row: a number does not fit its type, a divisor is zero, or a "
            "string "
            "is not a value of the type that it is cast to. Filter such rows first, or cast to a wider type."
        )
    ).cast(to_spark_type(value.kind))
    failed = value.column.isNull()
    for leaf in value.leaves:
        failed = failed & leaf.isNotNull()
    column = fn.when(failed, failure).otherwise(value.column)
    return _Value(column=column, kind=value.kind, leaves=(column,))


def _value(expression: Expression, schema: StructType) -> _Value:
    match expression:
        case ColumnName(path):
            return _column(path, schema)
        case Literal():
            return _constant(expression)
        case Comparison(operator, left, right):
            return _leaf(
                _compare(operator, _checked_value(left, schema), _checked_value(right, schema)), BOOLEAN
            )
        case And(terms):
            return _leaf(_combined([_truth(t, schema) for t in terms], lambda a, b: a & b), BOOLEAN)
        case Or(terms):
            return _leaf(_combined([_truth(t, schema) for t in terms], lambda a, b: a | b), BOOLEAN)
        case Not(operand):
            return _leaf(~_truth(operand, schema), BOOLEAN)
        case IsNull(operand):
            return _leaf(_checked_value(operand, schema).column.isNull(), BOOLEAN)
        case In(operand, values):
            return _leaf(_is_in(_checked_value(operand, schema), values), BOOLEAN)
        case Like(operand, pattern):
            text = _checked_value(operand, schema)
            return _leaf(_typed(text, STRING).like(pattern), BOOLEAN)
        case Cast(operand, target):
            return _cast(_value(operand, schema), target)
        case Arithmetic(operator, left, right):
            sides = _value(left, schema), _value(right, schema)
            if VOID in (sides[0].kind, sides[1].kind):
                return _null(_other_kind(sides[0].kind, sides[1].kind))
            decimal = any(isinstance(side.kind, DecimalType) for side in sides)
            a, b = (
                _as_decimal(side, constant) if decimal else side
                for side, constant in zip(sides, (left, right), strict=True)
            )
            column, kind = checked_numbers.arithmetic(operator, (a.column, a.kind), (b.column, b.kind))
            fails = checked_numbers.arithmetic_may_fail(operator, kind)
            return _Value(
                column=column,
                kind=kind,
                leaves=(*a.leaves, *b.leaves),
                may_fail=fails or a.may_fail or b.may_fail,
            )
        case Call(name, arguments):
            return _call(name, arguments, schema)


def _leaf(column: Column, kind: DataType) -> _Value:
    return _Value(column=column, kind=kind, leaves=(column,))


def _null(kind: DataType) -> _Value:
    from pyspark.sql import functions as fn

    return _leaf(fn.lit(None).cast(to_spark_type(kind)), kind)


def _other_kind(left: DataType, right: DataType) -> DataType:
    found = left if right == VOID else right
    return INTEGER if found == VOID else found


def _typed(value: _Value, kind: DataType) -> Column:
    return value.column.cast(to_spark_type(kind)) if value.kind == VOID else value.column


def _truth(expression: Expression, schema: StructType) -> Column:
    return _typed(_checked_value(expression, schema), BOOLEAN)


def _combined(parts: Sequence[Column], combine: Callable[[Column, Column], Column]) -> Column:
    """All parts combined as a balanced tree, because Connect refuses a chain with thousands of levels."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return combine(_combined(parts[:half], combine), _combined(parts[half:], combine))


def _column(path: tuple[str, ...], schema: StructType) -> _Value:
    from pyspark.sql import functions as fn

    names, kind = find_column(path, schema)
    return _leaf(fn.col(".".join("`" + name.replace("`", "``") + "`" for name in names)), kind)


def _constant(literal: Literal) -> _Value:
    from pyspark.sql import functions as fn

    value, kind = literal.value, literal_type(literal)
    if value is None:
        return _leaf(fn.lit(None), VOID) if kind == VOID else _null(kind)
    if isinstance(kind, DecimalType) or kind in INTEGRAL_RANGES:
        # Refuses a number that is not a value of its type.
        value = literal_scalar(literal).as_py()
    match value:
        case bool() | str():
            column = fn.lit(value)
        case int() if kind == INTEGER:
            column = fn.lit(value)
        case int() | float() if kind in (*INTEGRAL_RANGES, *FLOATING):
            column = fn.lit(value if kind in INTEGRAL_RANGES else float(value)).cast(to_spark_type(kind))
        case bytes():
            column = fn.unhex(fn.lit(value.hex()))
        case dt.datetime() if value.tzinfo is not None:
            column = utc_times.instant((value - _EPOCH) // dt.timedelta(microseconds=1))
        case dt.datetime():
            text = value.isoformat(sep=" ", timespec="microseconds")
            column = fn.lit(text).cast(to_spark_type(TIMESTAMP_NTZ))
        case dt.date():
            column = fn.lit(value.isoformat()).cast("date")
        case _:
            column = fn.lit(format(value, "f")).cast(to_spark_type(kind))
    return _Value(column=column, kind=kind, leaves=())


def _as_decimal(value: _Value, expression: Expression) -> _Value:
    """An integer constant as a decimal with as many digits as it has. Any other value is unchanged.

    In an operation with a decimal, the digits of both operands determine the type of the result.
    """
    if (
        isinstance(expression, Literal)
        and isinstance(expression.value, int)
        and value.kind in INTEGRAL_RANGES
    ):
        kind = DecimalType(len(str(abs(expression.value))), 0)
        return _Value(column=value.column.cast(to_spark_type(kind)), kind=kind, leaves=())
    return value


def _compare(operator: ComparisonOperator, left: _Value, right: _Value) -> Column:
    from pyspark.sql import functions as fn

    if VOID in (left.kind, right.kind):
        if operator == ComparisonOperator.EQ_NULL_SAFE:
            return left.column.isNull() & right.column.isNull()
        return fn.lit(None).cast("boolean")
    kind = checked_numbers.common_type(left.kind, right.kind)
    if not checked_numbers.holds_all(kind, left.kind, right.kind):
        return checked_numbers.compare_decimals(
            operator, (left.column, left.kind), (right.column, right.kind)
        )
    a = checked_numbers.converted(left.column, left.kind, kind)
    b = checked_numbers.converted(right.column, right.kind, kind)
    if kind in FLOATING:
        # A sum is not pushed down to the Parquet reader, which distinguishes the zeros and cannot order NaN.
        zero = fn.lit(0.0).cast(to_spark_type(kind))
        a, b = a + zero, b + zero
    match operator:
        case ComparisonOperator.EQ:
            return a == b
        case ComparisonOperator.NE:
            return a != b
        case ComparisonOperator.LT:
            return a < b
        case ComparisonOperator.LE:
            return a <= b
        case ComparisonOperator.GT:
            return a > b
        case ComparisonOperator.GE:
            return a >= b
        case ComparisonOperator.EQ_NULL_SAFE:
            return a.eqNullSafe(b)


def _is_in(operand: _Value, literals: tuple[Literal, ...]) -> Column:
    from pyspark.sql import functions as fn

    if operand.kind in (INTEGER, LONG, STRING) and {literal_type(one) for one in literals} == {operand.kind}:
        # A list may have thousands of literals, and each call of Spark's API costs time.
        return operand.column.isin(*[literal.value for literal in literals])
    values = [_constant(literal) for literal in literals]
    typed_values = [value for value in values if value.kind != VOID]
    if operand.kind == VOID or not typed_values:
        return fn.lit(None).cast("boolean")
    kind = operand.kind
    for value in typed_values:
        kind = checked_numbers.common_type(kind, value.kind)
    if not checked_numbers.holds_all(kind, operand.kind, *(value.kind for value in typed_values)):
        equal = [_compare(ComparisonOperator.EQ, operand, value) for value in values]
        return _combined(equal, lambda a, b: a | b)
    column = checked_numbers.converted(operand.column, operand.kind, kind)
    columns = [checked_numbers.converted(value.column, value.kind, kind) for value in values]
    if kind in FLOATING:
        # Spark looks up longer lists in a hash set, where the two zeros differ.
        zero = fn.lit(0.0).cast(to_spark_type(kind))
        column, columns = column + zero, [one + zero for one in columns]
    return column.isin(*columns)


def _cast(value: _Value, target: DataType) -> _Value:
    column = checked_numbers.cast(value.column, value.kind, target)
    fails = value.may_fail or checked_numbers.cast_may_fail(value.kind, target)
    return _Value(column=column, kind=target, leaves=value.leaves, may_fail=fails)


def _call(name: str, arguments: tuple[Expression, ...], schema: StructType) -> _Value:
    from pyspark.sql import functions as fn

    if name == "case":
        return _case(arguments, schema)
    if name in ("coalesce", "greatest", "least"):
        values = [_checked_value(argument, schema) for argument in arguments]
        kind, columns = _of_one_type(values)
        if kind == VOID:
            return values[0]
        return _leaf(columns[0] if len(columns) == 1 else getattr(fn, name)(*columns), kind)
    values = [_value(argument, schema) for argument in arguments]
    if name == "isnan":
        (value,) = (_checked_value(argument, schema) for argument in arguments)
        return _leaf(fn.lit(False) if value.kind == VOID else fn.isnan(value.column), BOOLEAN)
    column, kind = _function(name, values, arguments)
    leaves = tuple(leaf for value in values for leaf in value.leaves)
    return _Value(column=column, kind=kind, leaves=leaves, may_fail=_can_fail(name, values))


def _can_fail(name: str, values: Sequence[_Value]) -> bool:
    # The other functions have a result for all non-null arguments.
    functions = ("abs", "round", "floor", "ceil", "date_format", "date_add", "date_sub")
    return name in functions or any(value.may_fail for value in values)


def _case(arguments: tuple[Expression, ...], schema: StructType) -> _Value:
    from pyspark.sql import functions as fn

    *pairs, otherwise = arguments
    values = [_checked_value(value, schema) for value in (*pairs[1::2], otherwise)]
    kind, columns = _of_one_type(values)
    chosen = None
    for condition, column in zip(pairs[::2], columns, strict=False):
        truth = _truth(condition, schema)
        chosen = fn.when(truth, column) if chosen is None else chosen.when(truth, column)
    return _leaf(columns[-1] if chosen is None else chosen.otherwise(columns[-1]), kind)


def _of_one_type(values: Sequence[_Value]) -> tuple[DataType, list[Column]]:
    kind: DataType = VOID
    for value in values:
        kind = checked_numbers.common_type(kind, value.kind)
    if kind == VOID:
        return kind, [value.column for value in values]
    if not checked_numbers.holds_all(kind, *(value.kind for value in values if value.kind != VOID)):
        raise ExpressionError(
            f"The types {', '.join(str(value.kind) for value in values)} have no common type.",
            cause=f"A common type would have more than {checked_numbers.MAX_DIGITS} digits.",
            fix="CAST the values to decimals with fewer digits.",
        )
    return kind, [checked_numbers.converted(value.column, value.kind, kind) for value in values]


def _function(
    name: str, values: Sequence[_Value], arguments: tuple[Expression, ...]
) -> tuple[Column, DataType]:
    """A call of a function whose result is null when an argument is null, and the type of the result."""
    from pyspark.sql import functions as fn

    kinds = [value.kind for value in values]
    function = FUNCTIONS[name]
    if function.result_of_constants is not None:
        result = function.result_of_constants(kinds, arguments)
    else:
        result = function.result(kinds)
    if VOID in kinds and name != "concat":
        return _null(result).column, result
    first, kind = values[0].column, values[0].kind
    match name:
        case "abs":
            return checked_numbers.absolute(first, kind), kind
        case "round":
            return checked_numbers.rounded(first, kind, _number(arguments[1:], 0))
        case "floor" | "ceil":
            return checked_numbers.whole(name, first, kind)
        case "size":
            # The size of null would be -1 in some sessions.
            return fn.when(first.isNotNull(), fn.size(first)), result
        case "date_trunc":
            return utc_times.truncate_timestamp(
                _string(arguments[0]), values[1].column, values[1].kind
            ), result
        case "trunc":
            return utc_times.truncate_date(first, kind, _string(arguments[1])), result
        case "date_format":
            return utc_times.format_time(first, kind, _string(arguments[1])), result
        case "date_add":
            return utc_times.add_days(first, kind, values[1].column), result
        case "date_sub":
            return utc_times.add_days(first, kind, -values[1].column.cast("bigint")), result
        case "datediff":
            dates = [utc_times.date_of(value.column, value.kind) for value in values]
            return fn.datediff(dates[0], dates[1]), result
        case "last_day":
            return fn.last_day(utc_times.date_of(first, kind)), result
        case "concat":
            return fn.concat(*[_typed(value, STRING) for value in values]), result
        case "trim" | "ltrim" | "rtrim" | "lower" | "upper" | "length":
            of_one: Column = getattr(fn, name)(first)
            return of_one, result
        case "substring":
            return fn.substr(*[value.column for value in values]), result
        case "left" | "right" | "startswith" | "endswith" | "contains":
            of_two: Column = getattr(fn, name)(first, values[1].column)
            return of_two, result
    return utc_times.part(name, first, kind), result


def _number(arguments: tuple[Expression, ...], default: int) -> int:
    constant = arguments[0].value if arguments and isinstance(arguments[0], Literal) else default
    return constant if isinstance(constant, int) else default


def _string(argument: Expression) -> str:
    return str(argument.value) if isinstance(argument, Literal) else ""
