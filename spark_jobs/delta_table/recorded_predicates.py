"""Conditions in the history as delta-spark records them: Spark's form of the expressions that it parsed.

The log has the condition as SQL, which can be parsed again. delta-spark's `["('day = 2024-01-01)"]` cannot.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

from delta_core.errors import ExpressionError
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
from delta_core.expressions.parse import parse
from delta_core.schema.types import DataType


def as_recorded(predicates: Any) -> Any:
    """The value of the operation parameter `predicate`, with each condition as delta-spark has it.

    A value that is not a list of SQL conditions is returned unchanged, such as one of delta-spark itself.
    """
    conditions = _conditions(predicates)
    if not conditions:
        return predicates
    try:
        found = [_recorded(term) for sql in conditions for term in _terms(parse(sql))]
    except ExpressionError:
        return predicates
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _conditions(predicates: Any) -> list[str]:
    if isinstance(predicates, str):
        try:
            predicates = json.loads(predicates)
        except ValueError:
            return []
    is_list = isinstance(predicates, list) and all(isinstance(item, str) for item in predicates)
    return predicates if is_list else []


def _terms(expression: Expression) -> Iterator[Expression]:
    """The terms of a conjunction, which are recorded one by one."""
    if not isinstance(expression, And):
        yield expression
        return
    for term in expression.terms:
        yield from _terms(term)


def _recorded(expression: Expression) -> str:
    match expression:
        case Column(path):
            return "'" + ".".join(path)
        case Literal(value):
            return _value(value)
        case Comparison(ComparisonOperator.NE, left, right):
            return f"NOT ({_recorded(left)} = {_recorded(right)})"
        case Comparison(operator, left, right) | Arithmetic(operator, left, right):
            return f"({_recorded(left)} {operator} {_recorded(right)})"
        case And(terms):
            return _chain(terms, "AND")
        case Or(terms):
            return _chain(terms, "OR")
        case Not(IsNull(operand)):
            return f"isnotnull({_recorded(operand)})"
        case Not(operand):
            return f"NOT {_recorded(operand)}"
        case IsNull(operand):
            return f"isnull({_recorded(operand)})"
        case In(operand, values):
            return f"{_recorded(operand)} IN ({','.join(_recorded(value) for value in values)})"
        case Like(operand, pattern):
            return f"{_recorded(operand)} LIKE {pattern}"
        case Cast(operand, data_type):
            return f"cast({_recorded(operand)} as {_type(data_type)})"
        case Call(name, arguments):
            return f"'{name}({', '.join(_recorded(argument) for argument in arguments)})"


def _chain(terms: tuple[Expression, ...], word: str) -> str:
    chain = _recorded(terms[0])
    for term in terms[1:]:
        chain = f"({chain} {word} {_recorded(term)})"
    return chain


def _value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"0x{value.hex().upper()}"
        case dt.datetime():
            return value.isoformat(sep=" ")
        case _:
            return str(value)


def _type(data_type: DataType) -> str:
    names = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
    return names.get(str(data_type), str(data_type))
