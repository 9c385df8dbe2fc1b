"""The names in SQL text, found without parsing it: for expressions that other engines wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_WORDS = re.compile(
    r"""
      (?P<text> '(?:[^'\\]|\\.)*+'? | "(?:[^"\\]|\\.)*+"? )
    | (?P<comment> --[^\n]*+ | /\*(?:.*?\*/|.*+) )
    | (?P<number> \d[\w.]*+ )
    | (?P<name> (?:\w++|`(?:[^`]|``)*+`) (?:\s*+\.\s*+(?:\w++|`(?:[^`]|``)*+`))*+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(r"\w++|`(?:[^`]|``)*+`")
_BEHIND = re.compile(r"\s*+(\()?\s*+(\))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One name in SQL text: a column, a function or a keyword.

    Attributes:
        path: its parts; `a.b` has two.
        start, end: its position, including the parentheses of a call without arguments.
        is_quoted: whether it is in backticks, so that it must be a column.
        is_called: whether it is not quoted and an opening parenthesis follows.
        has_arguments: whether there are arguments in the parentheses.
    """

    path: tuple[str, ...]
    start: int
    end: int
    is_quoted: bool
    is_called: bool
    has_arguments: bool


def words(text: str) -> Iterator[Word]:
    """The names in SQL text, in order; string constants and comments are skipped."""
    for match in _WORDS.finditer(text):
        if match.lastgroup != "name":
            continue
        name = match["name"]
        behind = _BEHIND.match(text, match.end())
        quoted = "`" in name
        called = behind is not None and behind[1] is not None and not quoted
        empty = called and behind is not None and behind[2] is not None
        yield Word(
            path=tuple(_unquoted(part[0]) for part in _PART.finditer(name)),
            start=match.start(),
            end=behind.end() if empty and behind is not None else match.end(),
            is_quoted=quoted,
            is_called=called,
            has_arguments=called and not empty,
        )


def replace_words(text: str, replacement: Callable[[Word], str | None]) -> str:
    """The SQL text with names replaced; a replacement of None keeps the name."""
    parts: list[str] = []
    position = 0
    for word in words(text):
        new = replacement(word)
        if new is not None:
            parts += [text[position : word.start], new]
            position = word.end
    return "".join([*parts, text[position:]])


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part
