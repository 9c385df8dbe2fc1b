"""Errors for SQL that is not supported in expressions, each with the reason and an alternative."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.errors import SqlglotError

from delta_core.errors import ExpressionError

PAGE = "docs/predicates.md"

_PRESENT_TIME_NODES = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.Localtimestamp,
)
_PRESENT_TIME_NAMES = frozenset({"now", "curdate", "current_date", "current_timestamp", "localtimestamp"})
_NOT_OF_THE_ROW_NODES = (exp.Rand, exp.Randn, exp.Uuid, exp.CurrentUser)
_NOT_OF_THE_ROW_NAMES = frozenset(
    {
        "current_user",
        "input_file_name",
        "monotonically_increasing_id",
        "rand",
        "randn",
        "random",
        "session_user",
        "shuffle",
        "spark_partition_id",
        "user",
        "uuid",
    }
)


def refuse(node: Any) -> NoReturn:
    """Refuse a node that is not supported in expressions.

    Raises:
        ExpressionError: always.
    """
    text = excerpt(node.sql("spark") if isinstance(node, exp.Expression) else str(node))
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.Query | exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
        fail(
            f"{text} is a subquery, or contains one.",
            "A condition is evaluated on single rows of one table.",
            "Read the values first, and write them as a list: x IN (1, 2, 3).",
        )
    if isinstance(node, _PRESENT_TIME_NODES) or name in _PRESENT_TIME_NAMES:
        fail(
            f"{text} is the present time, which is not allowed in an expression.",
            "The expression would have a different meaning at each evaluation.",
            "Compute the time first, and write it as a constant: TIMESTAMP '2026-01-31 12:00:00' (UTC), or "
            "DATE '2026-01-31'.",
        )
    if isinstance(node, _NOT_OF_THE_ROW_NODES) or name in _NOT_OF_THE_ROW_NAMES:
        fail(
            f"{text} is not allowed in an expression.",
            "It does not depend on the row alone, so its value would differ at each evaluation.",
            "Compute the value first, and write it as a constant.",
        )
    if isinstance(node, exp.Placeholder | exp.Parameter):
        fail(
            f"{text} is a parameter.",
            "Expressions are passed without parameter values.",
            "Write the value as a constant.",
        )
    fail(
        f"{text} is not allowed in an expression.",
        f"{type(node).__name__} is not supported. Supported are columns, constants, comparisons, AND, OR, "
        "NOT, IN, LIKE, BETWEEN, IS NULL, arithmetic, CAST and a few functions.",
        f"Rewrite the condition with the syntax that {PAGE} lists.",
    )


def refuse_named(node: exp.Anonymous) -> None:
    """Refuse a call of a function that depends on more than its arguments. Raises ExpressionError."""
    if str(node.this).lower() in _PRESENT_TIME_NAMES | _NOT_OF_THE_ROW_NAMES:
        refuse(node)


def reason(error: SqlglotError) -> str:
    """The parser's message, without the names of its classes."""
    details = getattr(error, "errors", None)
    if details:
        first = details[0]
        description = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(first.get("description", "syntax error")))
        return f"{description} at column {first.get('col', '?')}"
    return str(error).split("\n", 1)[0][:200] or "syntax error"


def excerpt(text: str) -> str:
    """SQL text, truncated to 120 characters."""
    return text if len(text) <= 120 else f"{text[:117]}..."


def fail(problem: str, cause: str, fix: str) -> NoReturn:
    """Raise an ExpressionError."""
    raise ExpressionError(problem, cause=cause, fix=fix)
