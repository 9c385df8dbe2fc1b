"""Spark SQL expressions among a job's parameters, which are evaluated over the rows of the job only."""

from __future__ import annotations

from delta_core.errors import InvalidJobSpecError
from delta_core.expressions.subqueries import has_subquery


def require_row_expression(sql: str, *, what: str) -> str:
    """Return an expression without a subquery; `what` names it in messages.

    A subquery could read files and tables that the job does not name, also outside a connection's
    `allowed_roots`.

    Raises:
        InvalidJobSpecError: the expression has a subquery.
    """
    if has_subquery(sql):
        raise InvalidJobSpecError(
            f"The {what} has a subquery.",
            cause="An expression of a job is evaluated over the rows of the job only.",
            fix="Join the rows in a job before, or merge them. Put a column named select, with, from or "
            "table in backquotes.",
        )
    return sql
