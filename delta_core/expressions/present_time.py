"""Replacement of calls for the present time by the constant time of a statement, where this is allowed."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlglot import exp

_TIMESTAMPS = frozenset({"now", "current_timestamp"})
_DATES = frozenset({"curdate", "current_date"})


def with_present(tree: exp.Expression, now: dt.datetime) -> exp.Expression:
    """The tree with typed constants in place of calls for the present time.

    Args:
        tree: a parsed expression.
        now: the present, with the zone UTC. Dates and local times are in UTC.
    """

    def replaced(node: Any) -> Any:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) and not node.expressions else ""
        timestamp = now.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        if isinstance(node, exp.CurrentTimestamp) or name in _TIMESTAMPS:
            return _constant(f"{timestamp}+00:00", exp.DType.TIMESTAMPTZ)
        if isinstance(node, exp.Localtimestamp) or name == "localtimestamp":
            return _constant(timestamp, exp.DType.TIMESTAMPNTZ)
        if isinstance(node, exp.CurrentDate) or name in _DATES:
            return _constant(timestamp[:10], exp.DType.DATE)
        return node

    result: exp.Expression = tree.transform(replaced)
    return result


def _constant(string: str, kind: exp.DType) -> exp.Expression:
    return exp.Cast(this=exp.Literal.string(string), to=exp.DataType(this=kind))
