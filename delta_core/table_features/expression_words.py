"""The names in SQL text, without understanding it: for expressions that other engines wrote."""

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
    """One name in a text: a column, a function, a keyword.

    Attributes:
        path: its parts, `a.b` being two.
        start, end: where it stands, with the empty parentheses of a call that has no argument.
        is_quoted: whether it stands in backticks, so that it names a column for sure.
        is_called: whether an opening parenthesis follows, and it is not quoted.
        has_arguments: whether something follows that parenthesis.
    """

    path: tuple[str, ...]
    start: int
    end: int
    is_quoted: bool
    is_called: bool
    has_arguments: bool


def words(text: str) -> Iterator[Word]:
    """The names in SQL text, in order; nothing from its string constants and comments."""
    for match in _WORDS.finditer(text):
        if match.lastgroup != "name":
            continue
        found = match["name"]
        behind = _BEHIND.match(text, match.end())
        quoted = "`" in found
        called = behind is not None and behind[1] is not None and not quoted
        empty = called and behind is not None and behind[2] is not None
        yield Word(
            path=tuple(_unquoted(part[0]) for part in _PART.finditer(found)),
            start=match.start(),
            end=behind.end() if empty and behind is not None else match.end(),
            is_quoted=quoted,
            is_called=called,
            has_arguments=called and not empty,
        )


def replace_words(text: str, replacement: Callable[[Word], str | None]) -> str:
    """The text with names replaced; None leaves one as it is."""
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
