"""Tokens of SQL by Spark's lexical rules, each with its place in the SQL."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, NoReturn

from delta_core.errors import InvalidSqlError, SqlStatementError

MAX_STATEMENT_CHARACTERS: Final = 1 << 20
"""The maximum length of SQL."""

_SPACE = re.compile(r"\s+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|bd|[LSYDFlsydf])?(?!\w)")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"`((?:[^`]|``)*)`")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SYMBOL = re.compile(r"<=>|->|=>|\|\||<=|>=|<>|!=|==|::|<<|>>>|>>|.", re.DOTALL)


class TokenKind(Enum):
    """The kinds of tokens."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end of the statement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token.

    Attributes:
        value: the content of a string or a quoted name, without quotes and escapes; else the SQL itself.
        start, end: the token's place in the SQL.
    """

    kind: TokenKind
    value: str
    start: int
    end: int

    def is_word(self, word: str) -> bool:
        """Whether the token is this word, which is written in upper case, without quotes."""
        return self.kind is TokenKind.WORD and self.value.upper() == word

    def is_symbol(self, symbol: str) -> bool:
        """Whether the token is this symbol."""
        return self.kind is TokenKind.SYMBOL and self.value == symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexis:
    """The settings of a session that decide what quotes enclose.

    Attributes:
        double_quoted_names: whether double quotes enclose names (`spark.sql.ansi.doubleQuotedIdentifiers`).
        escapes: whether backslashes in strings are escapes (not `spark.sql.parser.escapedStringLiterals`).
    """

    double_quoted_names: bool = False
    escapes: bool = True


DEFAULT_LEXIS: Final = Lexis()


@dataclass(frozen=True)
class SqlSource:
    """SQL with the lines of its characters, for error messages."""

    sql: str

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.sql))]

    def place(self, offset: int) -> str:
        """The place of a character, such as `line 1, column 8`."""
        line = bisect_right(self._lines, offset)
        return f"line {line}, column {offset - self._lines[line - 1] + 1}"

    def fail(
        self,
        problem: str,
        offset: int,
        *,
        cause: str = "",
        fix: str,
        kind: type[SqlStatementError] = InvalidSqlError,
    ) -> NoReturn:
        """Raise an error about a place of the SQL."""
        placed = f"{problem.rstrip('.')} ({self.place(offset)})."
        raise kind(placed, cause=cause, fix=fix)


def tokens_of(source: SqlSource, lexis: Lexis = DEFAULT_LEXIS) -> list[Token]:
    """All tokens of some SQL, without comments, ended by a token of the kind END.

    Raises:
        InvalidSqlError: a string, name or comment is not closed, or the SQL is too long.
    """
    sql = source.sql
    if len(sql) > MAX_STATEMENT_CHARACTERS:
        source.fail(
            "The SQL is too long",
            0,
            cause=f"It has {len(sql)} characters, and the limit is {MAX_STATEMENT_CHARACTERS}.",
            fix="Split the SQL, or put long lists of values into a table.",
        )
    tokens: list[Token] = []
    at = 0
    while at < len(sql):
        after = _after_blank(source, at)
        if after > at:
            at = after
            continue
        token = _token(source, at, lexis)
        tokens.append(token)
        at = token.end
    tokens.append(Token(kind=TokenKind.END, value="", start=len(sql), end=len(sql)))
    return tokens


def _after_blank(source: SqlSource, at: int) -> int:
    sql = source.sql
    if sql.startswith("/*", at):
        return _after_comment(source, at)
    if sql.startswith("--", at):
        found = _LINE_COMMENT.match(sql, at)
        return found.end() if found else at
    space = _SPACE.match(sql, at)
    return space.end() if space else at


def _after_comment(source: SqlSource, at: int) -> int:
    """The end of a comment in brackets, which may contain other such comments, as in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(source.sql, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    source.fail("A comment is not closed", at, fix="Close the comment with */.")


def _token(source: SqlSource, at: int, lexis: Lexis) -> Token:
    sql, first = source.sql, source.sql[at]
    if first == "`":
        return _quoted_name(source, at, _NAME)
    if first == '"' and lexis.double_quoted_names:
        return _quoted_name(source, at, re.compile(r'"((?:[^"]|"")*)"'))
    if first in "'\"":
        return _string(source, at, escapes=lexis.escapes)
    if first in "rR" and sql[at + 1 : at + 2] in ("'", '"'):
        return _raw_string(source, at)
    for kind, pattern in ((TokenKind.NUMBER, _NUMBER), (TokenKind.WORD, _WORD)):
        found = pattern.match(sql, at)
        if found:
            return Token(kind=kind, value=found.group(), start=at, end=found.end())
    symbol = _SYMBOL.match(sql, at)
    end = symbol.end() if symbol else at + 1
    return Token(kind=TokenKind.SYMBOL, value=sql[at:end], start=at, end=end)


def _quoted_name(source: SqlSource, at: int, pattern: re.Pattern[str]) -> Token:
    found = pattern.match(source.sql, at)
    if found is None:
        source.fail("A quoted name is not closed", at, fix="Close the name with the quote that opens it.")
    quote = source.sql[at]
    value = found.group(1).replace(quote * 2, quote)
    if not value:
        source.fail("A quoted name is empty", at, fix="Write the name between the quotes.")
    return Token(kind=TokenKind.NAME, value=value, start=at, end=found.end())


def _raw_string(source: SqlSource, at: int) -> Token:
    """A string with the prefix r, which ends at the next quote."""
    sql = source.sql
    end = sql.find(sql[at + 1], at + 2)
    if end < 0:
        source.fail("A string is not closed", at, fix=f"Close the string with {sql[at + 1]}.")
    return Token(kind=TokenKind.STRING, value=sql[at + 2 : end], start=at, end=end + 1)


def _string(source: SqlSource, at: int, *, escapes: bool) -> Token:
    """A string. A doubled quote in it is a quote, as in Spark 4, and a backslash never ends it."""
    sql, quote = source.sql, source.sql[at]
    parts: list[str] = []
    position = at + 1
    while position < len(sql):
        character = sql[position]
        if character == quote:
            if sql[position + 1 : position + 2] != quote:
                return Token(kind=TokenKind.STRING, value="".join(parts), start=at, end=position + 1)
            parts.append(quote)
            position += 2
            continue
        found = _ESCAPED.match(sql, position) if character == "\\" else None
        if found is None:
            parts.append(character)
            position += 1
            continue
        parts.append(_unescaped(found) if escapes else sql[position : position + 2])
        position = found.end() if escapes else position + 2
    source.fail("A string is not closed", at, fix=f"Close the string with {quote}.")


def _unescaped(found: re.Match[str]) -> str:
    for group, base in ((1, 16), (2, 16), (3, 8)):
        if digits := found.group(group):
            code = int(digits, base)
            return chr(code) if code <= 0x10FFFF else "\ufffd"
    return _ESCAPES.get(found.group(4), found.group(4))
