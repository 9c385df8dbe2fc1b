"""Evaluation of expressions on Arrow data, column by column, in three-valued logic."""

from __future__ import annotations

import re
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import Operand, arithmetic, cast_value, compare, convert
from delta_core.expressions.ast import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
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
from delta_core.expressions.conditional import GREATEST, LEAST, evaluate_case, evaluate_extreme
from delta_core.expressions.functions import FUNCTIONS, as_string
from delta_core.expressions.listed_values import listed_values
from delta_core.expressions.literals import literal_scalar
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.arrow_values import ARROW_FALSE, arrow_scalar

Data = TypeVar("Data", pa.Table, pa.RecordBatch)


def evaluate(expression: Expression, data: pa.Table | pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
    """The expression's value for every row; for a predicate true, false or null.

    Args:
        expression: resolved against the schema of the data. Column names match exactly.
        data: rows with the columns that the expression refers to.

    Raises:
        ExpressionError: a column is missing, a value overflows or cannot be cast, or a divisor is zero.
    """
    value = _evaluate(expression, data)
    return pa.repeat(value, data.num_rows) if isinstance(value, pa.Scalar) else value


def matches(expression: Expression, data: pa.Table | pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
    """True where the predicate is true, false where it is false or null."""
    value = evaluate(expression, data)
    if pa.types.is_null(value.type):
        return pa.repeat(pa.scalar(False), data.num_rows)
    return pc.fill_null(value, ARROW_FALSE)


def filter_rows(expression: Expression, data: Data) -> Data:
    """The rows for which the predicate is true. When all rows match, `data` is returned without a copy."""
    mask = matches(expression, data)
    return data if pc.all(mask, min_count=0).as_py() else data.filter(mask)


def column_value(path: tuple[str, ...], data: pa.Table | pa.RecordBatch) -> pa.Array | pa.ChunkedArray:
    """A column, or a field of nested structs; null where any of the enclosing structs is null.

    Raises:
        ExpressionError: the data does not have the column.
    """
    if path[0] not in data.schema.names:
        raise ExpressionError(
            f"Column {path[0]} is not in the data.",
            cause=f"The data has the columns {', '.join(data.schema.names)}.",
            fix="Read the column, or resolve the expression against the data's schema.",
        )
    value = data.column(path[0])
    return pc.struct_field(value, list(path[1:])) if len(path) > 1 else value


def like_regex(pattern: str) -> str:
    """A LIKE pattern as a regular expression that matches the whole string.

    Raises:
        ExpressionError: a backslash that escapes neither a wildcard nor itself.
    """
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            following = pattern[position : position + 1]
            if following not in ("%", "_", "\\"):
                raise ExpressionError(
                    f"The pattern {pattern!r} is not valid.",
                    cause="A backslash can escape only %, _ or a backslash.",
                    fix="Double the backslash to match a backslash.",
                )
            parts.append(re.escape(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        position += 1
    return rf"(?s)\A{''.join(parts)}\z"


def _evaluate(expression: Expression, data: pa.Table | pa.RecordBatch) -> Operand:
    match expression:
        case Column(path):
            return column_value(path, data)
        case Literal():
            return literal_scalar(expression)
        case Comparison():
            return compare(
                expression.operator, _evaluate(expression.left, data), _evaluate(expression.right, data)
            )
        case And(terms):
            return _fold(pc.and_kleene, terms, data)
        case Or(terms):
            return _fold(pc.or_kleene, terms, data)
        case Not(operand):
            return pc.invert(_truth(operand, data))
        case IsNull(operand):
            return pc.is_null(_evaluate(operand, data))
        case In(operand, values):
            return _is_in(_evaluate(operand, data), values)
        case Like(operand, pattern):
            return _like(_evaluate(operand, data), pattern)
        case Cast(operand, data_type):
            return cast_value(_evaluate(operand, data), type_to_arrow(data_type))
        case Arithmetic():
            return arithmetic(
                expression.operator, _evaluate(expression.left, data), _evaluate(expression.right, data)
            )
        case Call("case"):
            return evaluate_case(expression, data, evaluate)
        case Call(name, arguments):
            return _call(name, [_evaluate(argument, data) for argument in arguments])


def _like(value: Operand, pattern: str) -> Operand:
    try:
        return pc.match_substring_regex(as_string(value), like_regex(pattern))
    except pa.ArrowInvalid as error:
        raise ExpressionError(
            f"The pattern of LIKE is too large: it has {len(pattern)} characters.",
            cause=str(error).split("\n")[0][:200],
            fix="Shorten the pattern, or use startswith, endswith or contains.",
        ) from error


def _truth(expression: Expression, data: pa.Table | pa.RecordBatch) -> Operand:
    value = _evaluate(expression, data)
    return pc.cast(value, pa.bool_()) if pa.types.is_null(value.type) else value


def _fold(combine: Operand, terms: tuple[Expression, ...], data: pa.Table | pa.RecordBatch) -> Operand:
    result = _truth(terms[0], data)
    for term in terms[1:]:
        result = combine(result, _truth(term, data))
    return result


def _is_in(value: Operand, literals: tuple[Literal, ...]) -> Operand:
    listed = listed_values(literals)
    known = listed.scalars
    if not known or pa.types.is_null(value.type):
        return compare(ComparisonOperator.EQ, value, pa.scalar(None))
    if listed.array is not None and listed.array.type == value.type:
        result = pc.is_in(value, value_set=listed.array)
    else:
        result = compare(ComparisonOperator.EQ, value, known[0])
        for scalar in known[1:]:
            result = pc.or_kleene(result, compare(ComparisonOperator.EQ, value, scalar))
        result = pc.fill_null(result, ARROW_FALSE)
    null = arrow_scalar(None, pa.bool_())
    if listed.has_null:
        # A value that is not in the list could still equal the null of the list.
        result = pc.if_else(result, pa.scalar(True), null)
    return pc.if_else(pc.is_null(value), null, result)


def _call(name: str, arguments: list[Operand]) -> Operand:
    if name == "coalesce":
        target = next((a.type for a in arguments if not pa.types.is_null(a.type)), pa.null())
        return pc.coalesce(*(convert(argument, target) for argument in arguments))
    if name in (GREATEST, LEAST):
        return evaluate_extreme(name, arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        raise ExpressionError(
            f"The function {name} is not supported.",
            cause="The expression was not resolved against a schema.",
            fix="Resolve the expression first.",
        )
    try:
        return function.run(arguments)
    except pa.ArrowInvalid as error:
        raise ExpressionError(
            f"{name} cannot be computed for one of the rows.",
            cause=str(error),
            fix="Filter out such rows first.",
        ) from error
