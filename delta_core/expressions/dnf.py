"""Filters as lists of tuples, `[("x", ">", 1)]`, as pyarrow, pandas and deltalake take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import (
    FALSE,
    And,
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
)
from delta_core.plain_values import plain

_FIX = "Pass a list such as [('day', '>=', '2026-01-01'), ('country', 'in', ['US', 'DE'])]."
_OPERATORS: Final = {
    "=": ComparisonOperator.EQ,
    "==": ComparisonOperator.EQ,
    "!=": ComparisonOperator.NE,
    "<": ComparisonOperator.LT,
    "<=": ComparisonOperator.LE,
    ">": ComparisonOperator.GT,
    ">=": ComparisonOperator.GE,
}

Filters = Sequence[Any]
"""A list of tuples (column, operator, value), joined by AND; or a list of such lists, joined by OR."""


def from_dnf(filters: Filters, *, empty_is_null: bool = False) -> Expression:
    """The filters as a predicate, not yet resolved.

    Args:
        filters: tuples of a column, an operator and a value. The operators are =, ==, !=, <, <=, >, >=, in
            and not in. A value of None stands for null. As in pyarrow, `not in`
            keeps rows whose value is null, unless the list contains None.
        empty_is_null: whether an empty string stands for null, as in partition values.

    Raises:
        ExpressionError: the argument has another form, or an operator does not exist.
    """
    if not isinstance(filters, list | tuple) or not filters:
        raise _malformed(filters, "It is not a list with tuples.")
    if all(isinstance(item, list) for item in filters):
        groups = [_group(item, empty_is_null) for item in filters]
        return groups[0] if len(groups) == 1 else Or(tuple(groups))
    if not all(isinstance(item, tuple) for item in filters):
        raise _malformed(filters, "It mixes tuples and lists: a list of tuples, or a list of such lists.")
    return _group(filters, empty_is_null)


def _group(tuples: Filters, empty_is_null: bool) -> Expression:
    if not tuples:
        raise _malformed(tuples, "It contains an empty conjunction, which would match all rows.")
    terms = [_term(item, empty_is_null) for item in tuples]
    return terms[0] if len(terms) == 1 else And(tuple(terms))


def _term(item: object, empty_is_null: bool) -> Expression:
    if not isinstance(item, tuple) or len(item) != 3 or not isinstance(item[0], str):
        raise _malformed(item, "It is not a tuple of a column, an operator and a value.")
    name, operator, value = item
    column = Column((name,))
    if operator in ("in", "not in"):
        if isinstance(value, str | bytes) or not isinstance(value, list | tuple | set | frozenset):
            raise _malformed(item, f"The operator {operator!r} needs a list of values.")
        return _listed(column, [plain(one) for one in value], _is_null(empty_is_null), operator == "not in")
    comparison = _OPERATORS.get(operator) if isinstance(operator, str) else None
    if comparison is None:
        raise _malformed(item, f"The operator {operator!r} does not exist.")
    value = plain(value)
    if _is_null(empty_is_null)(value):
        if comparison is ComparisonOperator.EQ:
            return IsNull(column)
        if comparison is ComparisonOperator.NE:
            return Not(IsNull(column))
    return Comparison(comparison, column, Literal(value))


def _is_null(empty_is_null: bool) -> Callable[[object], bool]:
    return lambda value: value is None or (empty_is_null and isinstance(value, str) and value == "")


def _listed(
    column: Column, values: Sequence[Any], is_null: Callable[[object], bool], negated: bool
) -> Expression:
    present = tuple(Literal(value) for value in values if not is_null(value))
    has_null = len(present) < len(values)
    if not values:
        raise _malformed(values, "The list of values is empty.")
    null = IsNull(column)
    found: Expression = In(column, present) if present else FALSE
    if negated:
        # As in pyarrow, a row whose value is null is not in a list without null.
        return And((Not(found), Not(null))) if has_null else Or((Not(found), null))
    return Or((found, null)) if has_null else found


def _malformed(filters: object, cause: str) -> ExpressionError:
    return ExpressionError(f"{filters!r} is not a filter.", cause=cause, fix=_FIX)
