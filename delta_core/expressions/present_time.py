"""The present time in SQL text, where it is allowed: it becomes the constant that it is for one statement."""

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
        now: the present, with the zone UTC. Dates and local times are those of UTC.
    """

    def replaced(node: Any) -> Any:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) and not node.expressions else ""
        text = now.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        if isinstance(node, exp.CurrentTimestamp) or name in _TIMESTAMPS:
            return _constant(f"{text}+00:00", exp.DType.TIMESTAMPTZ)
        if isinstance(node, exp.Localtimestamp) or name == "localtimestamp":
            return _constant(text, exp.DType.TIMESTAMPNTZ)
        if isinstance(node, exp.CurrentDate) or name in _DATES:
            return _constant(text[:10], exp.DType.DATE)
        return node

    found: exp.Expression = tree.transform(replaced)
    return found


def _constant(text: str, kind: exp.DType) -> exp.Expression:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=kind))
