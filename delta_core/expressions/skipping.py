"""Predicates as a test on file statistics: may any row of the file match?

Conservative: a file is given up only when its statistics prove that no row can match. What is unknown
- a missing bound, a function, a type without statistics - keeps the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import cast_value, compare
from delta_core.expressions.ast import (
    And,
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
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.literals import literal_scalar
from delta_core.schema.arrow import type_to_arrow

Mask = npt.NDArray[np.bool_]

MAX_LISTED_VALUES = 256
"""Longer IN lists are tested as one range."""

_NEGATED = {
    ComparisonOperator.EQ: ComparisonOperator.NE,
    ComparisonOperator.NE: ComparisonOperator.EQ,
    ComparisonOperator.LT: ComparisonOperator.GE,
    ComparisonOperator.LE: ComparisonOperator.GT,
    ComparisonOperator.GT: ComparisonOperator.LE,
    ComparisonOperator.GE: ComparisonOperator.LT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStats:
    """What is known of one column in each file; a null entry, or None for the array, is unknown.

    Attributes:
        minimum: at most as great as every value. In the column's type.
        maximum: at least as great as every value. For floating-point columns NaN counts as the greatest
            value, so a maximum that may leave NaN out must be null.
        null_count: number of nulls; with deletion vectors only 0 and the number of records mean
            anything, and no more than that is used.
    """

    minimum: pa.Array | None = None
    maximum: pa.Array | None = None
    null_count: pa.Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsColumns:
    """Statistics of many files, one entry per file in every array.

    Attributes:
        num_files: number of files.
        num_records: rows per file, null where unknown; None when never known.
        columns: by canonical column path.
        partitions: typed partition values, one row per file; their columns are exact.
    """

    num_files: int
    num_records: pa.Array | None = None
    columns: Mapping[tuple[str, ...], ColumnStats] = field(default_factory=dict)
    partitions: pa.Table | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Bounds of an operand, per file or for all; `all_null` is where it has no value at all."""

    low: Any
    high: Any
    all_null: Mask


def may_match(expression: Expression, stats: StatsColumns) -> Mask:
    """For each file, whether the predicate could be true for a row of it. Columnar; no I/O.

    Args:
        expression: resolved against the table's schema.
        stats: statistics of the columns that it names, as far as there are any.
    """
    return _may_be(expression, True, stats)


def partition_match(expression: Expression, partitions: pa.Table) -> Mask:
    """`may_match` on partition values alone; exact for predicates on partition columns only."""
    return may_match(expression, StatsColumns(num_files=partitions.num_rows, partitions=partitions))


def _may_be(expression: Expression, wanted: bool, stats: StatsColumns) -> Mask:
    """For each file, whether the expression could have the truth value `wanted` for a row."""
    exact = _on_partitions(expression, wanted, stats)
    if exact is not None:
        return exact
    match expression:
        case And(terms) | Or(terms):
            masks = (_may_be(term, wanted, stats) for term in terms)
            every = isinstance(expression, And) == wanted
            result = _all(stats)
            result[:] = every
            for mask in masks:
                if every:
                    result &= mask
                else:
                    result |= mask
            return result
        case Not(operand):
            return _may_be(operand, not wanted, stats)
        case IsNull(operand):
            return _may_be_null(operand, stats) if wanted else _may_have_value(operand, stats)
        case Comparison():
            return _comparison(expression, wanted, stats)
        case In():
            return _in(expression, wanted, stats)
        case Like():
            return _like(expression, wanted, stats)
        case Literal(value):
            return np.full(stats.num_files, value is wanted)
        case Column():
            return _may_have_value(expression, stats)
        case _:
            return _all(stats)


def _on_partitions(expression: Expression, wanted: bool, stats: StatsColumns) -> Mask | None:
    """The exact answer for an expression on partition columns alone, else None."""
    paths = referenced_columns(expression)
    if stats.partitions is None or not paths:
        return None
    names = set(stats.partitions.schema.names)
    if not all(len(path) == 1 and path[0] in names for path in paths):
        return None
    try:
        value = evaluate(expression, stats.partitions)
    except ExpressionError:
        # Rows raise the error when they are read; a file without rows must not.
        return None
    if not pa.types.is_boolean(value.type):
        return np.zeros(stats.num_files, dtype=np.bool_)
    return _mask(value if wanted else pc.invert(value), unknown=False)


def _comparison(expression: Comparison, wanted: bool, stats: StatsColumns) -> Mask:
    operator = expression.operator
    if operator == ComparisonOperator.EQ_NULL_SAFE:
        if not wanted:
            return _all(stats)
        equal = Comparison(ComparisonOperator.EQ, expression.left, expression.right)
        both_null = _may_be_null(expression.left, stats) & _may_be_null(expression.right, stats)
        return _comparison(equal, True, stats) | both_null
    if not wanted:
        operator = _NEGATED[operator]
    left, right = _bounds(expression.left, stats), _bounds(expression.right, stats)
    return _compare_bounds(operator, left, right, stats)


def _compare_bounds(operator: ComparisonOperator, left: _Bounds, right: _Bounds, stats: StatsColumns) -> Mask:
    match operator:
        case ComparisonOperator.LT | ComparisonOperator.LE:
            possible = _test(operator, left.low, right.high, stats)
        case ComparisonOperator.GT | ComparisonOperator.GE:
            possible = _test(operator, left.high, right.low, stats)
        case ComparisonOperator.EQ:
            possible = _test(ComparisonOperator.LE, left.low, right.high, stats)
            possible &= _test(ComparisonOperator.GE, left.high, right.low, stats)
        case _:
            # Different unless both sides are the same single value. Unknown counts as different.
            same = ~_test(ComparisonOperator.NE, left.low, left.high, stats)
            same &= ~_test(ComparisonOperator.NE, right.low, right.high, stats)
            same &= ~_test(ComparisonOperator.NE, left.low, right.low, stats)
            possible = ~same
    return possible & ~left.all_null & ~right.all_null


def _in(expression: In, wanted: bool, stats: StatsColumns) -> Mask:
    values = [value for value in expression.values if value.value is not None]
    if not wanted and len(values) < len(expression.values):
        # With a null in the list the result is true or null, never false.
        return np.zeros(stats.num_files, dtype=np.bool_)
    operand = _bounds(expression.operand, stats)
    if len(values) > MAX_LISTED_VALUES:
        return _in_range(operand, values, stats) if wanted else ~operand.all_null
    result = np.full(stats.num_files, not wanted)
    for value in values:
        constant = _bounds(value, stats)
        if wanted:
            result |= _compare_bounds(ComparisonOperator.EQ, operand, constant, stats)
        else:
            result &= _compare_bounds(ComparisonOperator.NE, operand, constant, stats)
    return result & ~operand.all_null


def _in_range(operand: _Bounds, values: list[Literal], stats: StatsColumns) -> Mask:
    scalars = [literal_scalar(value) for value in values]
    if any(scalar.type != scalars[0].type for scalar in scalars) or pa.types.is_floating(scalars[0].type):
        return ~operand.all_null
    listed = pc.min_max(pa.array([scalar.as_py() for scalar in scalars], scalars[0].type))
    span = _Bounds(low=listed["min"], high=listed["max"], all_null=np.zeros(stats.num_files, dtype=np.bool_))
    return _compare_bounds(ComparisonOperator.EQ, operand, span, stats)


def _like(expression: Like, wanted: bool, stats: StatsColumns) -> Mask:
    operand = _bounds(expression.operand, stats)
    possible = ~operand.all_null
    prefix, rest = like_prefix(expression.pattern)
    if not prefix or not _is_text(operand.low) or not _is_text(operand.high):
        return possible
    first = pa.scalar(prefix)
    low_prefix = pc.utf8_slice_codeunits(operand.low, 0, len(prefix))
    if wanted:
        # Cutting to a prefix keeps the order, so the bounds of the prefixes are the prefixes' bounds.
        possible &= _test(ComparisonOperator.LE, low_prefix, first, stats)
        possible &= _test(ComparisonOperator.GE, operand.high, first, stats)
    elif rest == "%":
        high_prefix = pc.utf8_slice_codeunits(operand.high, 0, len(prefix))
        same = ~_test(ComparisonOperator.NE, low_prefix, first, stats)
        same &= ~_test(ComparisonOperator.NE, high_prefix, first, stats)
        possible &= ~same
    return possible


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


def _bounds(expression: Expression, stats: StatsColumns) -> _Bounds:
    """Bounds of an operand; null where nothing is known."""
    match expression:
        case Literal():
            scalar = literal_scalar(expression)
            return _Bounds(low=scalar, high=scalar, all_null=np.full(stats.num_files, not scalar.is_valid))
        case Column(path):
            if stats.partitions is not None and len(path) == 1 and path[0] in stats.partitions.schema.names:
                value = stats.partitions.column(path[0])
                return _Bounds(low=value, high=value, all_null=_mask(pc.is_null(value), unknown=False))
            known = stats.columns.get(path)
            if known is not None:
                low, high = known.minimum, known.maximum
                return _Bounds(low=low, high=high, all_null=~_may_have_value(expression, stats))
        case Cast(operand, data_type):
            inner = _bounds(operand, stats)
            target = type_to_arrow(data_type)
            if _is_monotone(inner.low, target) and _is_monotone(inner.high, target):
                try:
                    low, high = (cast_value(side, target) for side in (inner.low, inner.high))
                    return _Bounds(low=low, high=high, all_null=inner.all_null)
                except ExpressionError:
                    pass
        case Call("year", (operand,)):
            inner = _bounds(operand, stats)
            if _is_datetime(inner.low) and _is_datetime(inner.high):
                return _Bounds(low=pc.year(inner.low), high=pc.year(inner.high), all_null=inner.all_null)
    return _Bounds(low=None, high=None, all_null=np.zeros(stats.num_files, dtype=np.bool_))


def _is_monotone(value: Any, target: pa.DataType) -> bool:
    """Whether a cast keeps the order of values (and so turns bounds into bounds)."""
    if value is None:
        return False
    types, source = pa.types, value.type
    if types.is_floating(source):
        return bool(types.is_floating(target))
    numeric = types.is_integer(source) or types.is_decimal(source)
    if numeric:
        return bool(types.is_integer(target) or types.is_decimal(target) or types.is_floating(target))
    return _is_datetime(value) and bool(types.is_date(target) or types.is_timestamp(target))


def _is_datetime(value: Any) -> bool:
    return value is not None and bool(pa.types.is_date(value.type) or pa.types.is_timestamp(value.type))


def _is_text(value: Any) -> bool:
    return value is not None and bool(pa.types.is_string(value.type))


def _may_be_null(operand: Expression, stats: StatsColumns) -> Mask:
    match operand:
        case Literal(value):
            return np.full(stats.num_files, value is None)
        case Column(path):
            known = stats.columns.get(path)
            if stats.partitions is not None and len(path) == 1 and path[0] in stats.partitions.schema.names:
                return _mask(pc.is_null(stats.partitions.column(path[0])), unknown=True)
            if known is not None and known.null_count is not None:
                return _mask(pc.greater(known.null_count, 0), unknown=True)
    return _all(stats)


def _may_have_value(operand: Expression, stats: StatsColumns) -> Mask:
    """Whether the operand could be other than null for a row."""
    if isinstance(operand, Column):
        path = operand.path
        if stats.partitions is not None and len(path) == 1 and path[0] in stats.partitions.schema.names:
            return _mask(pc.is_valid(stats.partitions.column(path[0])), unknown=True)
        known = stats.columns.get(path)
        if known is not None and known.null_count is not None and stats.num_records is not None:
            return _mask(pc.less(known.null_count, stats.num_records), unknown=True)
    return _all(stats)


def _test(operator: ComparisonOperator, left: Any, right: Any, stats: StatsColumns) -> Mask:
    """A comparison of bounds; unknown is possible."""
    if left is None or right is None:
        return _all(stats)
    value = compare(operator, left, right)
    if isinstance(value, pa.Scalar):
        return np.full(stats.num_files, value.as_py() is not False)
    return _mask(value, unknown=True)


def _mask(value: Any, *, unknown: bool) -> Mask:
    filled = pc.fill_null(value, unknown)
    if isinstance(filled, pa.ChunkedArray):
        # Chunked arrays give read-only views or copies depending on their chunks; a copy is always ours.
        return np.array(filled.to_numpy(), dtype=np.bool_)
    return np.array(filled.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _all(stats: StatsColumns) -> Mask:
    return np.ones(stats.num_files, dtype=np.bool_)
