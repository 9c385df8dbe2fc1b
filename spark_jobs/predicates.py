"""Resolved expressions as native ones that mean what delta_core's evaluation does, in any session.

SQL text means what the session's settings make of it: its time zone, its ANSI mode, how it reads strings and
timestamps. A DataFrame keeps its expressions and is used later, perhaps under other settings. So there is no
text here, every conversion is spelled out, and times go by UTC.

A row for which an expression has no value (an overflow, a division by zero, a text that is no number) fails
whatever uses the DataFrame, in ANSI mode and outside of it.
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
from spark_jobs import checked_numbers, utc_times
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """A part of an expression.

    Attributes:
        column: its value; where `may_fail`, null also stands for no value.
        kind: its type; `void` for a null without one.
        leaves: what the value is made of. When none of these is null and the value is, it has failed.
        may_fail: whether that can happen.
    """

    column: Column
    kind: DataType
    leaves: tuple[Column, ...]
    may_fail: bool = False


def to_column(expression: Expression, schema: StructType) -> Column:
    """The expression as a column; a null without a type is one of booleans.

    Args:
        expression: resolved against `schema`.
        schema: of the DataFrame's columns; an alias is a column of that name, a struct of the aliased ones.

    Raises:
        ExpressionError: a constant is no value of its type, or decimals have more digits than Spark
            computes with.
    """
    value = _settled(expression, schema)
    return value.column.cast("boolean") if value.kind == VOID else value.column


def _settled(expression: Expression, schema: StructType) -> _Value:
    """The value, where a row without one fails."""
    from pyspark.sql import functions as fn

    value = _value(expression, schema)
    if not value.may_fail:
        return value
    text = to_spark_sql(expression)
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    failure = fn.raise_error(
        fn.lit(
            f"{shown} has no value for a row: a number does not fit its type, a divisor is zero, or a text "
            "is no value of the type that it is cast to. Exclude such rows first, or cast to a wider type."
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
            return _leaf(_compared(operator, _settled(left, schema), _settled(right, schema)), BOOLEAN)
        case And(terms):
            return _leaf(_balanced([_truth(t, schema) for t in terms], lambda a, b: a & b), BOOLEAN)
        case Or(terms):
            return _leaf(_balanced([_truth(t, schema) for t in terms], lambda a, b: a | b), BOOLEAN)
        case Not(operand):
            return _leaf(~_truth(operand, schema), BOOLEAN)
        case IsNull(operand):
            return _leaf(_settled(operand, schema).column.isNull(), BOOLEAN)
        case In(operand, values):
            return _leaf(_is_in(_settled(operand, schema), values), BOOLEAN)
        case Like(operand, pattern):
            text = _settled(operand, schema)
            return _leaf(_typed(text, STRING).like(pattern), BOOLEAN)
        case Cast(operand, target):
            return _cast(_value(operand, schema), target)
        case Arithmetic(operator, left, right):
            sides = _value(left, schema), _value(right, schema)
            if VOID in (sides[0].kind, sides[1].kind):
                return _nothing(_other_kind(sides[0].kind, sides[1].kind))
            decimal = any(isinstance(side.kind, DecimalType) for side in sides)
            a, b = (
                _as_decimal(side, given) if decimal else side
                for side, given in zip(sides, (left, right), strict=True)
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


def _nothing(kind: DataType) -> _Value:
    from pyspark.sql import functions as fn

    return _leaf(fn.lit(None).cast(to_spark_type(kind)), kind)


def _other_kind(left: DataType, right: DataType) -> DataType:
    found = left if right == VOID else right
    return INTEGER if found == VOID else found


def _typed(value: _Value, kind: DataType) -> Column:
    return value.column.cast(to_spark_type(kind)) if value.kind == VOID else value.column


def _truth(expression: Expression, schema: StructType) -> Column:
    return _typed(_settled(expression, schema), BOOLEAN)


def _balanced(parts: Sequence[Column], combine: Callable[[Column, Column], Column]) -> Column:
    """All parts combined, no deeper than need be: a chain of thousands is deeper than Connect reads."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return combine(_balanced(parts[:half], combine), _balanced(parts[half:], combine))


def _column(path: tuple[str, ...], schema: StructType) -> _Value:
    from pyspark.sql import functions as fn

    names, kind = find_column(path, schema)
    return _leaf(fn.col(".".join("`" + name.replace("`", "``") + "`" for name in names)), kind)


def _constant(literal: Literal) -> _Value:
    from pyspark.sql import functions as fn

    value, kind = literal.value, literal_type(literal)
    if value is None:
        return _leaf(fn.lit(None), VOID) if kind == VOID else _nothing(kind)
    if isinstance(kind, DecimalType) or kind in INTEGRAL_RANGES:
        # Refuses a number that is none of its type.
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
    """A whole constant with as many digits as it has: next to a decimal, each one counts."""
    if (
        isinstance(expression, Literal)
        and isinstance(expression.value, int)
        and value.kind in INTEGRAL_RANGES
    ):
        kind = DecimalType(len(str(abs(expression.value))), 0)
        return _Value(column=value.column.cast(to_spark_type(kind)), kind=kind, leaves=())
    return value


def _compared(operator: ComparisonOperator, left: _Value, right: _Value) -> Column:
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
        # A sum is not handed to the Parquet reader, which tells the zeros apart and knows no order of NaN.
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
        # A list may have thousands of these, and each call of Spark's takes its time.
        return operand.column.isin(*[literal.value for literal in literals])
    values = [_constant(literal) for literal in literals]
    known = [value for value in values if value.kind != VOID]
    if operand.kind == VOID or not known:
        return fn.lit(None).cast("boolean")
    kind = operand.kind
    for value in known:
        kind = checked_numbers.common_type(kind, value.kind)
    if not checked_numbers.holds_all(kind, operand.kind, *(value.kind for value in known)):
        equal = [_compared(ComparisonOperator.EQ, operand, value) for value in values]
        return _balanced(equal, lambda a, b: a | b)
    column = checked_numbers.converted(operand.column, operand.kind, kind)
    columns = [checked_numbers.converted(value.column, value.kind, kind) for value in values]
    if kind in FLOATING:
        # Spark looks longer lists up in a set, where the two zeros differ.
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
        values = [_settled(argument, schema) for argument in arguments]
        kind, columns = _of_one_type(values)
        if kind == VOID:
            return values[0]
        return _leaf(columns[0] if len(columns) == 1 else getattr(fn, name)(*columns), kind)
    values = [_value(argument, schema) for argument in arguments]
    if name == "isnan":
        (value,) = (_settled(argument, schema) for argument in arguments)
        return _leaf(fn.lit(False) if value.kind == VOID else fn.isnan(value.column), BOOLEAN)
    column, kind = _function(name, values, arguments)
    leaves = tuple(leaf for value in values for leaf in value.leaves)
    return _Value(column=column, kind=kind, leaves=leaves, may_fail=_can_fail(name, values))


def _can_fail(name: str, values: Sequence[_Value]) -> bool:
    # The other functions have a value for all arguments that are not null.
    own = ("abs", "round", "floor", "ceil", "date_format", "date_add", "date_sub")
    return name in own or any(value.may_fail for value in values)


def _case(arguments: tuple[Expression, ...], schema: StructType) -> _Value:
    from pyspark.sql import functions as fn

    *pairs, otherwise = arguments
    values = [_settled(value, schema) for value in (*pairs[1::2], otherwise)]
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
            f"Values of the types {', '.join(str(value.kind) for value in values)} have no type in common",
            cause=f"It would have more than {checked_numbers.MOST_DIGITS} digits",
            fix="CAST them to decimals with fewer digits",
        )
    return kind, [checked_numbers.converted(value.column, value.kind, kind) for value in values]


def _function(
    name: str, values: Sequence[_Value], arguments: tuple[Expression, ...]
) -> tuple[Column, DataType]:
    """A function whose value is null where an argument is."""
    from pyspark.sql import functions as fn

    kinds = [value.kind for value in values]
    function = FUNCTIONS[name]
    if function.result_of_constants is not None:
        result = function.result_of_constants(kinds, arguments)
    else:
        result = function.result(kinds)
    if VOID in kinds and name != "concat":
        return _nothing(result).column, result
    first, kind = values[0].column, values[0].kind
    match name:
        case "abs":
            return checked_numbers.absolute(first, kind), kind
        case "round":
            return checked_numbers.rounded(first, kind, _number(arguments[1:], 0))
        case "floor" | "ceil":
            return checked_numbers.whole(name, first, kind)
        case "size":
            # Of null it would be -1 in some sessions.
            return fn.when(first.isNotNull(), fn.size(first)), result
        case "date_trunc":
            return utc_times.cut_to(_string(arguments[0]), values[1].column, values[1].kind), result
        case "trunc":
            return utc_times.first_date(first, kind, _string(arguments[1])), result
        case "date_format":
            return utc_times.formatted(first, kind, _string(arguments[1])), result
        case "date_add":
            return utc_times.moved(first, kind, values[1].column), result
        case "date_sub":
            return utc_times.moved(first, kind, -values[1].column.cast("bigint")), result
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
    given = arguments[0].value if arguments and isinstance(arguments[0], Literal) else default
    return given if isinstance(given, int) else default


def _string(argument: Expression) -> str:
    return str(argument.value) if isinstance(argument, Literal) else ""
