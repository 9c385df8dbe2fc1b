"""Functions that split expressions into parts and combine expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from delta_core.expressions.ast import (
    FALSE,
    TRUE,
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct operands of an expression."""
    match expression:
        case Comparison() | Arithmetic():
            return (expression.left, expression.right)
        case And() | Or():
            return expression.terms
        case Not() | IsNull() | Like() | Cast():
            return (expression.operand,)
        case In():
            return (expression.operand, *expression.values)
        case Call():
            return expression.arguments
        case Column() | Literal():
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all of its descendants; iterative, so that deep trees do not exhaust the stack."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def map_columns(expression: Expression, change: Callable[[Column], Expression]) -> Expression:
    """The expression with every column replaced by the result of `change`."""

    def changed(node: Expression) -> Expression:
        match node:
            case Column():
                return change(node)
            case Comparison(operator, left, right):
                return Comparison(operator, changed(left), changed(right))
            case Arithmetic(operation, left, right):
                return Arithmetic(operation, changed(left), changed(right))
            case And(terms):
                return And(tuple(map(changed, terms)))
            case Or(terms):
                return Or(tuple(map(changed, terms)))
            case Not(operand):
                return Not(changed(operand))
            case IsNull(operand):
                return IsNull(changed(operand))
            case In(operand, values):
                return In(changed(operand), values)
            case Like(operand, pattern):
                return Like(changed(operand), pattern)
            case Cast(operand, data_type):
                return Cast(changed(operand), data_type)
            case Call(name, arguments):
                return Call(name, tuple(map(changed, arguments)))
            case Literal():
                return node

    return changed(expression)


def referenced_columns(expression: Expression) -> frozenset[tuple[str, ...]]:
    """The paths of all columns in the expression."""
    paths = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Column):
            paths.add(node.path)
        # A list may have thousands of values, and none of them is a column.
        pending.extend((node.operand,) if isinstance(node, In) else children(node))
    return frozenset(paths)


def referenced_names(expression: Expression) -> frozenset[str]:
    """The top-level names of all columns in the expression."""
    return frozenset(path[0] for path in referenced_columns(expression))


def split_conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The terms of a conjunction: a row matches when each term is true."""
    if isinstance(expression, And):
        return tuple(term for part in expression.terms for term in split_conjuncts(part))
    return (expression,)


def conjunction(terms: Iterable[Expression]) -> Expression:
    """The conjunction of the terms; TRUE for an empty sequence."""
    return _combine(And, terms, TRUE, FALSE)


def disjunction(terms: Iterable[Expression]) -> Expression:
    """The disjunction of the terms; FALSE for an empty sequence."""
    return _combine(Or, terms, FALSE, TRUE)


def _combine(
    kind: type[And] | type[Or], terms: Iterable[Expression], neutral: Literal, zero: Literal
) -> Expression:
    flat: list[Expression] = []
    for term in terms:
        parts = term.terms if isinstance(term, kind) else (term,)
        for part in parts:
            value = part.value if isinstance(part, Literal) else None
            if isinstance(part, Literal) and value is zero.value:
                return zero
            if not (isinstance(part, Literal) and value is neutral.value):
                flat.append(part)
    if not flat:
        return neutral
    return flat[0] if len(flat) == 1 else kind(tuple(flat))
