"""Recognition of subqueries in Spark SQL that only Spark parses."""

from __future__ import annotations

import re
from typing import Final

_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
# Everything that is not code, by Spark's lexical rules. A comment in brackets has only its start here.
_NOT_CODE: Final = r"""--(?:\\\n|[^\r\n])*
    |/\*
    |(?<!\w)[rR]'[^']*(?:'|$)
    |(?<!\w)[rR]"[^"]*(?:"|$)
    |'(?:[^'\\]|\\.)*(?:'|\\?$)
    |`(?:[^`]|``)*(?:`|$)
    |"""
# A session's settings decide whether double quotes enclose strings with escapes, or names without.
_READINGS: Final = tuple(
    re.compile(_NOT_CODE + quoted, re.VERBOSE | re.DOTALL)
    for quoted in (r'"(?:[^"\\]|\\.)*(?:"|\\?$)', r'"[^"]*(?:"|$)')
)
# `values` is also a frequent name of columns. MAP and REDUCE with USING call a program, as TRANSFORM does.
_SUBQUERY: Final = re.compile(
    r"\(\s*(?:(?:SELECT|WITH|FROM|TABLE)\b|VALUES\s*[(\d']|(?:MAP|REDUCE)\b.*\bUSING\b)",
    re.IGNORECASE | re.DOTALL,
)


def has_subquery(sql: str) -> bool:
    """Whether an expression in Spark SQL contains a subquery, which may read any file or table.

    An unquoted column named `select`, `with`, `from` or `table` after a parenthesis counts as a subquery.
    """
    return any(_SUBQUERY.search(_code(sql, reading)) for reading in _READINGS)


def _code(sql: str, not_code: re.Pattern[str]) -> str:
    """The SQL text with a space for each comment, and an empty string for each string and quoted name."""
    parts: list[str] = []
    at = 0
    while found := not_code.search(sql, at):
        parts.append(sql[at : found.start()])
        is_comment = found.group()[:2] in ("--", "/*")
        parts.append(" " if is_comment else " '' ")
        at = _comment_end(sql, found.start()) if found.group() == "/*" else found.end()
    return "".join([*parts, sql[at:]])


def _comment_end(sql: str, start: int) -> int:
    """The end of a comment in brackets, which may contain other such comments."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(sql)
