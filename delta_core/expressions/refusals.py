"""What is said of text that is no expression here: what it is, why not, and what to write in its place."""

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
    """Say what a node is that an expression cannot hold.

    Raises:
        ExpressionError: always.
    """
    text = shown(node.sql("spark") if isinstance(node, exp.Expression) else str(node))
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.Query | exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
        fail(
            f"{text} is a subquery, or holds one",
            "A condition is of one row of the table alone",
            "Read the values first, and write them as a list: x IN (1, 2, 3)",
        )
    if isinstance(node, _PRESENT_TIME_NODES) or name in _PRESENT_TIME_NAMES:
        fail(
            f"{text} is the present time, which is not allowed in an expression",
            "It would mean something else whenever the expression is evaluated",
            "Compute the time first, and write it as a constant: TIMESTAMP '2026-01-31 12:00:00' (UTC), or "
            "DATE '2026-01-31'",
        )
    if isinstance(node, _NOT_OF_THE_ROW_NODES) or name in _NOT_OF_THE_ROW_NAMES:
        fail(
            f"{text} is not allowed in an expression",
            "It does not depend on the row alone, so it would mean something else each time",
            "Compute the value first, and write it as a constant",
        )
    if isinstance(node, exp.Placeholder | exp.Parameter):
        fail(f"{text} is a parameter", "Text has no values besides it", "Write the value as a constant")
    fail(
        f"{text} is not allowed in an expression",
        f"{type(node).__name__} is not among what is understood: columns, constants, comparisons, AND, OR, "
        "NOT, IN, LIKE, BETWEEN, IS NULL, arithmetic, CAST and a few functions",
        f"Rewrite the condition with what {PAGE} lists",
    )


def refuse_named(node: exp.Anonymous) -> None:
    """Refuse a call of a function that does not depend on its arguments alone. Raises ExpressionError."""
    if str(node.this).lower() in _PRESENT_TIME_NAMES | _NOT_OF_THE_ROW_NAMES:
        refuse(node)


def reason(error: SqlglotError) -> str:
    """What the parser says, without the names of its classes."""
    details = getattr(error, "errors", None)
    if details:
        first = details[0]
        description = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(first.get("description", "syntax error")))
        return f"{description} at column {first.get('col', '?')}"
    return str(error).split("\n", 1)[0][:200] or "syntax error"


def shown(text: str) -> str:
    """The text, or its beginning."""
    return text if len(text) <= 120 else f"{text[:117]}..."


def fail(problem: str, cause: str, fix: str) -> NoReturn:
    """Raise the error."""
    raise ExpressionError(problem, cause=cause, fix=fix)
