"""A place in the tokens of one statement, and the parts that all statements have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar

from delta_core.errors import InvalidSqlError, SqlStatementError, UnsupportedSqlError
from spark_jobs.sql_statements.parsing.literals import constant
from spark_jobs.sql_statements.parsing.tokens import (
    DEFAULT_LEXIS,
    Lexis,
    SqlSource,
    Token,
    TokenKind,
    tokens_of,
)
from spark_jobs.sql_statements.statements import Slice, TableReference

T = TypeVar("T")

MAX_NESTING: Final = 64
"""The maximum number of nested brackets."""

_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSING: Final = frozenset(_OPENING.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """The values of a statement's parameters: `:name` and `?`."""

    named: Mapping[str, Any] = field(default_factory=dict)
    positional: Sequence[Any] = ()


NO_BINDINGS: Final = Bindings()


class Cursor:
    """The tokens of one statement and the next one to be read."""

    def __init__(
        self,
        source: SqlSource,
        tokens: Sequence[Token],
        *,
        bindings: Bindings = NO_BINDINGS,
        lexis: Lexis = DEFAULT_LEXIS,
    ) -> None:
        self.source = source
        self.tokens = tokens
        self.bindings = bindings
        self.lexis = lexis
        self.position = 0
        self._question_marks = [token.start for token in tokens if token.is_symbol("?")]

    def peek(self, ahead: int = 0) -> Token:
        """The next token, or one after it. At the end it is the token END."""
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    @property
    def at_end(self) -> bool:
        """Whether all tokens are taken."""
        return self.peek().kind is TokenKind.END

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words."""
        return all(self.peek(ahead).is_word(word) for ahead, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        """Whether the next token is one of these words."""
        return any(self.at(word) for word in words)

    def accept(self, *words: str) -> bool:
        """Take these words if they are next."""
        if not self.at(*words):
            return False
        self.position += len(words)
        return True

    def accept_symbol(self, symbol: str) -> bool:
        """Take this symbol if it is next."""
        if not self.peek().is_symbol(symbol):
            return False
        self.next()
        return True

    def expect(self, *words: str) -> None:
        """Take these words. Raises InvalidSqlError when they are not next."""
        if not self.accept(*words):
            self.fail(f"{' '.join(words)} is expected here")

    def expect_symbol(self, symbol: str) -> None:
        """Take this symbol. Raises InvalidSqlError when it is not next."""
        if not self.accept_symbol(symbol):
            self.fail(f"{symbol} is expected here")

    def expect_end(self, statement: str) -> None:
        """Raise InvalidSqlError when tokens are left."""
        if not self.at_end:
            self.fail(f"{statement} does not continue like this")

    def fail(
        self,
        problem: str,
        *,
        token: Token | None = None,
        cause: str = "",
        fix: str = "Correct the statement; docs/sql.md shows its form.",
        kind: type[SqlStatementError] = InvalidSqlError,
    ) -> NoReturn:
        """Raise an error about the next token, or another one."""
        found = self.peek() if token is None else token
        if not cause:
            shown = self.source.sql[found.start : found.end][:60]
            cause = f"Found is {shown}" if shown else "The statement ends here."
        self.source.fail(problem, found.start, cause=cause, fix=fix, kind=kind)

    def unsupported(self, what: str, *, token: Token | None = None, fix: str, cause: str = "") -> NoReturn:
        """Raise an UnsupportedSqlError that names a statement or a clause."""
        self.fail(
            f"{what} is not supported",
            token=token,
            cause=cause or "The statement is known, but there is no implementation for it.",
            fix=fix,
            kind=UnsupportedSqlError,
        )

    def between(self, start: int, end: int) -> str:
        """The SQL between two places."""
        return self.source.sql[start:end]

    def identifier(self, what: str = "name") -> str:
        """Take a name, quoted or not."""
        token = self.peek()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME):
            self.fail(
                f"A {what} is expected here", fix="Write the name; put special characters in backticks."
            )
        return self.next().value

    def path(self, what: str = "name") -> tuple[str, ...]:
        """Take a name of several parts with dots."""
        parts = [self.identifier(what)]
        while self.accept_symbol("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def string(self, what: str) -> str:
        """Take a string, or a parameter that is a string."""
        token = self.peek()
        if token.kind is TokenKind.STRING:
            parts = []
            while self.peek().kind is TokenKind.STRING:
                parts.append(self.next().value)
            return "".join(parts)
        if self.at_parameter():
            value = self.parameter()
            if isinstance(value, str):
                return value
            self.fail(
                f"The {what} must be a string",
                token=token,
                cause=f"The parameter is of type {type(value).__name__}.",
                fix="Pass a string.",
            )
        self.fail(f"The {what} is expected here as a string", fix="Write it in single quotes.")

    def number(self, what: str) -> int | float:
        """Take a number, or a parameter that is a number."""
        token = self.peek()
        sign = -1 if self.accept_symbol("-") else 1
        if self.at_parameter():
            value = self.parameter()
            if isinstance(value, int | float) and not isinstance(value, bool):
                return sign * value
            self.fail(
                f"The {what} must be a number",
                token=token,
                cause=f"The parameter is of type {type(value).__name__}.",
                fix="Pass a number.",
            )
        if self.peek().kind is TokenKind.NUMBER:
            digits = self.next().value.rstrip("LlSsYyDdFfBb")
            try:
                return sign * (int(digits) if digits.isdigit() else float(digits))
            except ValueError:
                self.fail(f"The {what} is not a number", token=token, fix="Correct the number.")
        self.fail(f"The {what} is expected here as a number", fix="Write a number.")

    def integer(self, what: str) -> int:
        """Take a whole number, or a parameter that is one."""
        token = self.peek()
        value = self.number(what)
        if isinstance(value, float):
            self.fail(f"The {what} must be a whole number", token=token, fix="Write a whole number.")
        return value

    def at_parameter(self, index: int | None = None) -> bool:
        """Whether a parameter, `:name` or `?`, is at this token; None for the next one."""
        at = self.position if index is None else index
        token = self.tokens[at]
        if token.is_symbol("?"):
            return True
        if not token.is_symbol(":") or at + 1 >= len(self.tokens):
            return False
        name = self.tokens[at + 1]
        if name.kind is not TokenKind.WORD or name.start != token.end:
            return False
        before = self.tokens[at - 1] if at else None
        if before is None or before.end < token.start:
            return True
        return before.kind is TokenKind.SYMBOL and before.value not in (")", "]")

    def parameter(self) -> Any:
        """Take a parameter and return its value. Raises InvalidSqlError when it has none."""
        value, self.position = self.bound(self.position)
        return value

    def bound(self, at: int) -> tuple[Any, int]:
        """The value of the parameter at a token, and the token after it. Raises InvalidSqlError."""
        token = self.tokens[at]
        if token.is_symbol("?"):
            index = self.question_mark(at)
            if index < len(self.bindings.positional):
                return self.bindings.positional[index], at + 1
            self.fail(
                f"The parameter ? number {index + 1} has no value",
                token=token,
                fix="Pass args=[...] with a value for each question mark.",
            )
        name = self.tokens[at + 1].value
        if name in self.bindings.named:
            return self.bindings.named[name], at + 2
        self.fail(
            f"The parameter :{name} has no value",
            token=token,
            cause=f"Values are given for: {', '.join(sorted(self.bindings.named)) or 'no parameter'}.",
            fix=f"Pass {name}=... with the statement.",
        )

    def question_mark(self, at: int) -> int:
        """The number, from 0, of the `?` at this token."""
        return self._question_marks.index(self.tokens[at].start)

    def slice(self, what: str, *stops: str, in_list: bool = False) -> Slice:
        """Take an expression, which ends before one of the words, a closing bracket, or the end.

        Args:
            what: the expression's role, for messages.
            stops: words that end it, in upper case, outside of brackets and CASE.
            in_list: whether a comma ends it.
        """
        first = self.position
        self.pass_over(what, *stops, in_list=in_list)
        return self.slice_of(first, self.position)

    def pass_over(self, what: str, *stops: str, in_list: bool = False) -> None:
        """Pass over an expression or a query; see `slice`."""
        first = self.position
        pending: list[str] = []
        cases = [0]
        while not self.at_end:
            token = self.peek()
            if not pending and cases[-1] == 0 and self._ends(token, stops, in_list):
                break
            if token.kind is TokenKind.SYMBOL and token.value in _OPENING:
                pending.append(_OPENING[token.value])
                cases.append(0)
                if len(pending) > MAX_NESTING:
                    self.fail(
                        f"The {what} is nested too deeply",
                        cause=f"The limit is {MAX_NESTING} nested brackets.",
                        fix="Use fewer brackets.",
                    )
            elif token.kind is TokenKind.SYMBOL and token.value in _CLOSING:
                if not pending or pending.pop() != token.value:
                    self.fail(f"The bracket {token.value} in the {what} closes nothing")
                cases.pop()
            elif token.kind is TokenKind.WORD and not self._is_part(self.position):
                if token.is_word("CASE"):
                    cases[-1] += 1
                elif token.is_word("END") and cases[-1]:
                    cases[-1] -= 1
            self.position += 1
        if pending:
            self.fail(f"A bracket in the {what} is not closed", fix=f"Close it with {pending[-1]}.")
        if self.position == first:
            self.fail(f"The {what} is missing", fix="Write a Spark SQL expression.")

    def _ends(self, token: Token, stops: Sequence[str], in_list: bool) -> bool:
        if token.kind is TokenKind.SYMBOL:
            return token.value in _CLOSING or (in_list and token.value == ",")
        return any(token.is_word(stop) for stop in stops) and not self._is_part(self.position)

    def _is_part(self, at: int) -> bool:
        """Whether the word is a part of a name with dots, and so not a keyword."""
        return at > 0 and self.tokens[at - 1].is_symbol(".")

    def slice_of(self, first: int, last: int) -> Slice:
        """The SQL of some tokens, with constants in place of parameters."""
        start, end = self.tokens[first].start, self.tokens[last - 1].end
        parts, written, at = [], start, first
        while at < last:
            if not self.at_parameter(at):
                at += 1
                continue
            name = self.between(self.tokens[at].start, self.tokens[at].end)
            value, after = self.bound(at)
            parts.append(self.between(written, self.tokens[at].start))
            parts.append(f" {constant(name, value, self.lexis)} ")
            written, at = self.tokens[after - 1].end, after
        parts.append(self.between(written, end))
        return Slice(sql="".join(parts).strip(), start=start, end=end)

    def in_brackets(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Take a list of items in brackets, with commas between them."""
        self.expect_symbol("(")
        items = [item()]
        while self.accept_symbol(","):
            items.append(item())
        self.expect_symbol(")")
        return tuple(items)

    def properties(self, what: str) -> dict[str, str]:
        """Take a list of keys and values in brackets: `('key' = 'value', a.b = 1)`."""
        found: dict[str, str] = {}

        def one() -> None:
            token = self.peek()
            key = self.property_key()
            value = ""
            if (
                self.accept_symbol("=")
                or self.accept_symbol("==")
                or (not self.peek().is_symbol(",") and not self.peek().is_symbol(")"))
            ):
                value = self._property_value(what)
            if key in found:
                self.fail(f"The {what} {key} is given twice", token=token, fix="Remove one of the two.")
            found[key] = value

        self.in_brackets(one)
        return found

    def property_key(self) -> str:
        """Take the key of a property: a string, or a name with dots."""
        if self.peek().kind is TokenKind.STRING or self.at_parameter():
            return self.string("key")
        return ".".join(self.path("key"))

    def _property_value(self, what: str) -> str:
        token = self.peek()
        if self.accept("TRUE"):
            return "true"
        if self.accept("FALSE"):
            return "false"
        if token.kind is TokenKind.NUMBER or token.is_symbol("-"):
            return str(self.number(f"value of the {what}"))
        if self.at_parameter():
            value = self.parameter()
            if isinstance(value, bool):
                return "true" if value else "false"
            if isinstance(value, str | int | float):
                return str(value)
            self.fail(
                f"The value of a {what} must be a string, a number or a bool",
                token=token,
                cause=f"The parameter is of type {type(value).__name__}.",
                fix="Pass a string.",
            )
        return self.string(f"value of the {what}")

    def reference(self, *, time_travel: bool = False) -> TableReference:
        """Take the name of a table: `a.b`, ``delta.`/path` `` or `IDENTIFIER('a.b')`, and its time travel."""
        token = self.peek()
        if self.at("IDENTIFIER") and self.peek(1).is_symbol("("):
            parts = self._identifier_clause()
        else:
            parts = self.path("name of a table")
        end = self.tokens[self.position - 1].end
        version, timestamp = None, None
        if self.peek().is_symbol("@") and self.peek().start == end:
            version, timestamp = self.at_suffix()
        elif self.at_time_travel():
            version, timestamp = self.time_travel()
        if (version is not None or timestamp is not None) and not time_travel:
            self.fail(
                "This statement cannot use an older version of the table",
                token=token,
                fix="Leave out the version or the timestamp.",
            )
        return TableReference(
            parts=parts,
            version=version,
            timestamp=timestamp,
            start=token.start,
            end=self.tokens[self.position - 1].end,
        )

    def _identifier_clause(self) -> tuple[str, ...]:
        token = self.next()
        self.expect_symbol("(")
        name = self.string("name of a table")
        self.expect_symbol(")")
        source = SqlSource(name)
        inner = Cursor(source, tokens_of(source, self.lexis), lexis=self.lexis)
        try:
            parts = inner.path("name of a table")
            inner.expect_end("A name of a table")
        except InvalidSqlError as error:
            self.fail(
                "The name in IDENTIFIER is not the name of a table",
                token=token,
                cause=str(error),
                fix="Pass a name such as db.t, with backticks around special characters.",
            )
        return parts

    def at_time_travel(self) -> bool:
        """Whether `VERSION AS OF` or `TIMESTAMP AS OF` is next, with a value after it."""
        ahead = 1 if self.at("FOR") else 0
        if not any(self.peek(ahead).is_word(word) for word in TRAVEL_WORDS):
            return False
        if not (self.peek(ahead + 1).is_word("AS") and self.peek(ahead + 2).is_word("OF")):
            return False
        value = self.peek(ahead + 3)
        return value.kind is not TokenKind.END and not any(value.is_word(word) for word in _AFTER_ALIAS)

    def time_travel(self) -> tuple[int | None, Slice | None]:
        """Take `[FOR] {VERSION | TIMESTAMP | ...} AS OF value`: a version, or the SQL of a timestamp."""
        self.accept("FOR")
        is_version = self.next().value.upper() in ("VERSION", "SYSTEM_VERSION")
        self.expect("AS", "OF")
        if not is_version:
            return None, self._timestamp()
        if self.peek().kind is TokenKind.STRING:
            token = self.next()
            if not token.value.isascii() or not token.value.isdigit():
                self.fail("The version is not a whole number", token=token, fix="Write a version such as 12.")
            return int(token.value), None
        return self._version()

    def _version(self) -> tuple[int, None]:
        token = self.peek()
        version = self.integer("version")
        if version < 0:
            self.fail("The version is negative", token=token, fix="Write a version such as 12.")
        return version, None

    def _timestamp(self) -> Slice:
        """The expression of a timestamp: operands with + and - between them."""
        first = self.position
        self._operand()
        while self.peek().is_symbol("+") or self.peek().is_symbol("-"):
            self.next()
            self._operand()
        return self.slice_of(first, self.position)

    def _operand(self) -> None:
        token = self.peek()
        if self.at_parameter():
            self.position += 1 if token.is_symbol("?") else 2
            return
        if self.accept("INTERVAL"):
            while self.peek().kind in (TokenKind.STRING, TokenKind.NUMBER):
                self.next()
                if self.peek().kind is TokenKind.WORD and self.peek().value.upper() in _UNITS:
                    self.next()
            return
        typed = any(token.is_word(word) for word in _TIME_TYPES)
        if typed and self.peek(1).kind is TokenKind.STRING:
            self.position += 2
            return
        if token.kind in (TokenKind.STRING, TokenKind.NUMBER):
            self.next()
            return
        if token.kind is TokenKind.WORD:
            self.next()
            if not self.peek().is_symbol("("):
                return
        if self.accept_symbol("("):
            if not self.peek().is_symbol(")"):
                self.slice("timestamp")
            self.expect_symbol(")")
            return
        self.fail("A timestamp is expected here", fix="Write it such as '2013-01-31 08:00:00'.")

    def at_suffix(self) -> tuple[int | None, Slice | None]:
        """Take `@v12` or `@20130131080000000` after a name."""
        token = self.next()
        value = self.next()
        suffix = value.value
        if value.start == token.end and suffix[:1] in "vV" and suffix[1:].isdigit() and suffix.isascii():
            return int(suffix[1:]), None
        if value.start == token.end and suffix.isdigit() and suffix.isascii() and len(suffix) == 17:
            day = f"{suffix[:4]}-{suffix[4:6]}-{suffix[6:8]}"
            time = f"{day} {suffix[8:10]}:{suffix[10:12]}:{suffix[12:14]}.{suffix[14:]}"
            return None, Slice(sql=f"'{time}'", start=value.start, end=value.end)
        self.fail(
            "A version or a timestamp is expected after @",
            token=value,
            fix="Write @v12, or @yyyyMMddHHmmssSSS such as @20130131080000000.",
        )


_TIME_TYPES: Final = ("TIMESTAMP", "DATE", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
TRAVEL_WORDS: Final = ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")
_AFTER_ALIAS: Final = ("FROM", "WHERE", "ON", "JOIN", "AS", "GROUP", "ORDER", "UNION", "USING", "WHEN")
_UNITS: Final = frozenset(
    unit + plural
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
    for plural in ("", "S")
)
