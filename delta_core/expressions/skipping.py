"""Data skipping: a predicate as a test on file statistics that shows whether any row of a file may match.

The test is conservative: a file is skipped only when its statistics prove that no row can match. Anything
unknown (a missing bound, a function, a type without statistics) keeps the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import compare
from delta_core.expressions.ast import (
    And,
    Call,
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
from delta_core.expressions.bounds import (
    Bounds,
    Mask,
    as_mask,
    bounds_of,
    everywhere,
    is_string,
    may_be_null,
    may_have_value,
)
from delta_core.expressions.bounds import (
    ColumnStats as ColumnStats,
)
from delta_core.expressions.bounds import (
    StatsColumns as StatsColumns,
)
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.listed_values import listed_values

MAX_LISTED_VALUES = 256
"""IN lists with more values are tested as one range."""

_NEGATED = {
    ComparisonOperator.EQ: ComparisonOperator.NE,
    ComparisonOperator.NE: ComparisonOperator.EQ,
    ComparisonOperator.LT: ComparisonOperator.GE,
    ComparisonOperator.LE: ComparisonOperator.GT,
    ComparisonOperator.GT: ComparisonOperator.LE,
    ComparisonOperator.GE: ComparisonOperator.LT,
}


def may_match(expression: Expression, stats: StatsColumns) -> Mask:
    """For each file, whether the predicate could be true for one of its rows. Columnar; no I/O.

    Args:
        expression: resolved against the table's schema.
        stats: statistics of the columns of the expression, as far as they are known.
    """
    return _may_be(expression, True, stats)


def partition_match(expression: Expression, partitions: pa.Table) -> Mask:
    """For each row of partition values, whether a predicate on partition columns is true. Exact.

    Raises:
        ExpressionError: the predicate cannot be evaluated for a row, such as a cast of a string that fails.
    """
    if not referenced_columns(expression):
        return may_match(expression, StatsColumns(num_files=partitions.num_rows))
    value = evaluate(expression, partitions)
    if not pa.types.is_boolean(value.type):
        return np.zeros(partitions.num_rows, dtype=np.bool_)
    return as_mask(value, unknown=False)


def _may_be(expression: Expression, truth: bool, stats: StatsColumns) -> Mask:
    """For each file, whether the expression could have the truth value `truth` for a row."""
    exact = _on_partitions(expression, truth, stats)
    if exact is not None:
        return exact
    match expression:
        case And(terms) | Or(terms):
            masks = (_may_be(term, truth, stats) for term in terms)
            every = isinstance(expression, And) == truth
            result = everywhere(stats)
            result[:] = every
            for mask in masks:
                if every:
                    result &= mask
                else:
                    result |= mask
            return result
        case Not(operand):
            return _may_be(operand, not truth, stats)
        case IsNull(operand):
            return may_be_null(operand, stats) if truth else may_have_value(operand, stats)
        case Comparison():
            return _comparison(expression, truth, stats)
        case In():
            return _in(expression, truth, stats)
        case Like():
            return _like(expression, truth, stats)
        case Literal(value):
            return np.full(stats.num_files, value is truth)
        case Call("startswith", (operand, Literal(str() as prefix))):
            return _prefixed(bounds_of(operand, stats), prefix, truth, stats, exact=True)
        case Call("isnan", (operand,)) if truth:
            # A maximum includes NaN, and the maximum is NaN only when the column contains NaN.
            return _test_nan(bounds_of(operand, stats).high, stats) & may_have_value(operand, stats)
        case Call("isnan"):
            return everywhere(stats)
        case _:
            return may_have_value(expression, stats)


def _on_partitions(expression: Expression, truth: bool, stats: StatsColumns) -> Mask | None:
    """The exact answer for an expression on partition columns only, else None."""
    paths = referenced_columns(expression)
    if stats.partitions is None or not paths:
        return None
    names = set(stats.partitions.schema.names)
    if not all(len(path) == 1 and path[0] in names for path in paths):
        return None
    try:
        value = evaluate(expression, stats.partitions)
    except ExpressionError:
        # Keep the file: reading its rows raises the error, if the rest of the predicate leaves any.
        return None
    if not pa.types.is_boolean(value.type):
        return np.zeros(stats.num_files, dtype=np.bool_)
    return as_mask(value if truth else pc.invert(value), unknown=False)


def _comparison(expression: Comparison, truth: bool, stats: StatsColumns) -> Mask:
    operator = expression.operator
    if operator == ComparisonOperator.EQ_NULL_SAFE:
        return _null_safe(expression.left, expression.right, truth, stats)
    if not truth:
        operator = _NEGATED[operator]
    left, right = bounds_of(expression.left, stats), bounds_of(expression.right, stats)
    return _compare_bounds(operator, left, right, stats)


def _null_safe(left: Expression, right: Expression, truth: bool, stats: StatsColumns) -> Mask:
    equal = _comparison(Comparison(ComparisonOperator.EQ, left, right), truth, stats)
    if truth:
        return equal | (may_be_null(left, stats) & may_be_null(right, stats))
    one_null = may_be_null(left, stats) & may_have_value(right, stats)
    return equal | one_null | (may_have_value(left, stats) & may_be_null(right, stats))


def _compare_bounds(operator: ComparisonOperator, left: Bounds, right: Bounds, stats: StatsColumns) -> Mask:
    match operator:
        case ComparisonOperator.LT | ComparisonOperator.LE:
            possible = _test(operator, left.low, right.high, stats)
        case ComparisonOperator.GT | ComparisonOperator.GE:
            possible = _test(operator, left.high, right.low, stats)
        case ComparisonOperator.EQ:
            possible = _test(ComparisonOperator.LE, left.low, right.high, stats)
            possible &= _test(ComparisonOperator.GE, left.high, right.low, stats)
        case _:
            # Different unless both sides have the same single value. An unknown bound counts as different.
            same = ~_test(ComparisonOperator.NE, left.low, left.high, stats)
            same &= ~_test(ComparisonOperator.NE, right.low, right.high, stats)
            same &= ~_test(ComparisonOperator.NE, left.low, right.low, stats)
            possible = ~same
    return possible & ~left.all_null & ~right.all_null


def _in(expression: In, truth: bool, stats: StatsColumns) -> Mask:
    if len(expression.values) > MAX_LISTED_VALUES:
        return _in_many(expression, truth, stats)
    values = [value for value in expression.values if value.value is not None]
    if not truth and len(values) < len(expression.values):
        # With a null in the list the result is true or null, never false.
        return np.zeros(stats.num_files, dtype=np.bool_)
    operand = bounds_of(expression.operand, stats)
    result = np.full(stats.num_files, not truth)
    for value in values:
        constant = bounds_of(value, stats)
        if truth:
            result |= _compare_bounds(ComparisonOperator.EQ, operand, constant, stats)
        else:
            result &= _compare_bounds(ComparisonOperator.NE, operand, constant, stats)
    return result & ~operand.all_null


def _in_many(expression: In, truth: bool, stats: StatsColumns) -> Mask:
    listed = listed_values(expression.values)
    if not truth and listed.has_null:
        return np.zeros(stats.num_files, dtype=np.bool_)
    operand = bounds_of(expression.operand, stats)
    if listed.array is None or not truth:
        return ~operand.all_null
    span = Bounds(low=listed.low, high=listed.high, all_null=np.zeros(stats.num_files, dtype=np.bool_))
    return _compare_bounds(ComparisonOperator.EQ, operand, span, stats)


def _like(expression: Like, truth: bool, stats: StatsColumns) -> Mask:
    prefix, rest = like_prefix(expression.pattern)
    operand = bounds_of(expression.operand, stats)
    if not rest:
        # A pattern without a wildcard is an equality.
        value = pa.array([prefix])[0]
        constant = Bounds(low=value, high=value, all_null=np.zeros(stats.num_files, dtype=np.bool_))
        operator = ComparisonOperator.EQ if truth else ComparisonOperator.NE
        return _compare_bounds(operator, operand, constant, stats)
    return _prefixed(operand, prefix, truth, stats, exact=rest == "%")


def _prefixed(operand: Bounds, prefix: str, truth: bool, stats: StatsColumns, *, exact: bool) -> Mask:
    """Whether a string may start with `prefix` or, if `truth` is false, with anything else.

    Args:
        exact: whether every string with the prefix satisfies the condition.
    """
    possible = ~operand.all_null
    if not is_string(operand.low) or not is_string(operand.high):
        return possible
        # Truncation preserves the order, so the truncated bounds are the bounds of the prefixes.
    first = pa.array([prefix])[0]
    low, high = (pc.utf8_slice_codeunits(side, 0, len(prefix)) for side in (operand.low, operand.high))
    if truth:
        possible &= _test(ComparisonOperator.LE, low, first, stats)
        possible &= _test(ComparisonOperator.GE, high, first, stats)
    elif exact:
        same = ~_test(ComparisonOperator.NE, low, first, stats)
        same &= ~_test(ComparisonOperator.NE, high, first, stats)
        possible &= ~same
    return possible


def _test_nan(high: Any, stats: StatsColumns) -> Mask:
    if high is None or not pa.types.is_floating(high.type):
        return everywhere(stats)
    value = pc.is_nan(high)
    if isinstance(value, pa.Scalar):
        return np.full(stats.num_files, value.as_py() is not False)
    return as_mask(value, unknown=True)


def like_prefix(pattern: str) -> tuple[str, str]:
    """The characters that a match must start with, unescaped, and the rest of the pattern."""
    prefix: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character in "%_":
            break
        if character == "\\":
            position += 1
            if position >= len(pattern):
                break
        prefix.append(pattern[position])
        position += 1
    return "".join(prefix), pattern[position:]


def _test(operator: ComparisonOperator, left: Any, right: Any, stats: StatsColumns) -> Mask:
    """A comparison of bounds; an unknown result counts as possible."""
    if left is None or right is None:
        return everywhere(stats)
    value = compare(operator, left, right)
    if isinstance(value, pa.Scalar):
        return np.full(stats.num_files, value.as_py() is not False)
    return as_mask(value, unknown=True)
