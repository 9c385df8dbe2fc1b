"""The entry of the parser: from SQL to the value of one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from delta_core.errors import ConfigurationError
from spark_jobs.sql_statements.parsing.alter import take_alter, take_comment
from spark_jobs.sql_statements.parsing.changes import (
    take_delete,
    take_insert,
    take_merge,
    take_truncate,
    take_update,
)
from spark_jobs.sql_statements.parsing.copying import take_copy
from spark_jobs.sql_statements.parsing.create import left_to_spark, take_create, take_drop, whole
from spark_jobs.sql_statements.parsing.cursor import NO_BINDINGS, Bindings, Cursor
from spark_jobs.sql_statements.parsing.query import at_query, query_between, take_query
from spark_jobs.sql_statements.parsing.show import take_describe, take_show
from spark_jobs.sql_statements.parsing.tokens import (
    DEFAULT_LEXIS,
    Lexis,
    SqlSource,
    Token,
    TokenKind,
    tokens_of,
)
from spark_jobs.sql_statements.parsing.upkeep import (
    take_convert,
    take_generate,
    take_optimize,
    take_reorganize,
    take_repair,
    take_restore,
    take_vacuum,
)
from spark_jobs.sql_statements.statements import SelectStatement, SparkStatement, Statement, TableReference

_TAKERS: Final[Mapping[str, Callable[[Cursor], Statement]]] = {
    "ALTER": take_alter,
    "COMMENT": take_comment,
    "CONVERT": take_convert,
    "COPY": take_copy,
    "CREATE": take_create,
    "DELETE": take_delete,
    "DESC": take_describe,
    "DESCRIBE": take_describe,
    "DROP": take_drop,
    "FSCK": take_repair,
    "GENERATE": take_generate,
    "INSERT": take_insert,
    "MERGE": take_merge,
    "OPTIMIZE": take_optimize,
    "REORG": take_reorganize,
    "REPLACE": take_create,
    "RESTORE": take_restore,
    "SHOW": take_show,
    "TRUNCATE": take_truncate,
    "UPDATE": take_update,
    "VACUUM": take_vacuum,
}
_REFUSED: Final = {
    ("APPLY", "CHANGES"): "Use MERGE, or the job kind merge with deduplication.",
    ("UNDROP",): "Register the table again: CREATE TABLE name USING deltaward LOCATION 'path'.",
}
_TABLE_STATEMENTS: Final = (
    ("ANALYZE", "TABLE"),
    ("MSCK", "REPAIR", "TABLE"),
    ("REPAIR", "TABLE"),
    ("CACHE", "LAZY", "TABLE"),
    ("CACHE", "TABLE"),
    ("UNCACHE", "TABLE"),
    ("LOAD", "DATA"),
)
"""Statements of Spark that name a table and have no meaning for ours."""


def parse_statement(sql: str, bindings: Bindings = NO_BINDINGS, lexis: Lexis = DEFAULT_LEXIS) -> Statement:
    """Parse one statement. A semicolon at its end is allowed.

    Raises:
        InvalidSqlError: the SQL is not one statement, or a parameter has no value.
        UnsupportedSqlError: the statement is known, but not supported; the message has its name.
        ConfigurationError: the SQL is not a string, or a parameter's value has no constant.
    """
    if not isinstance(sql, str):
        raise ConfigurationError(
            f"{sql!r} is not a SQL statement.",
            cause=f"It is of type {type(sql).__name__}.",
            fix="Pass the statement as a string.",
        )
    source = SqlSource(sql)
    tokens = tokens_of(source, lexis)
    if tokens[0].is_word("BEGIN"):
        own = [token for token in tokens[:-1] if not token.is_symbol(";")]
        return SparkStatement(sql=sql[own[0].start : own[-1].end], what="BEGIN")
    parts = list(_parts(tokens))
    if not parts:
        source.fail("There is no statement", 0, cause="The SQL is blank.", fix="Write one SQL statement.")
    if len(parts) > 1:
        source.fail(
            f"The SQL has {len(parts)} statements",
            parts[1][0].start,
            cause="One call runs one statement.",
            fix="Run each statement with a call of its own, or all with the command `deltaward sql`.",
        )
    return _statement(Cursor(source, parts[0], bindings=bindings, lexis=lexis))


def split_statements(script: str, lexis: Lexis = DEFAULT_LEXIS) -> list[str]:
    """The statements of a script, without their semicolons.

    Raises:
        InvalidSqlError: a string, name or comment is not closed.
    """
    tokens = tokens_of(SqlSource(script), lexis)
    if tokens[0].is_word("BEGIN"):
        return [script]
    return [script[part[0].start : part[-1].start].strip() for part in _parts(tokens)]


def _parts(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement, ended by a token of the kind END."""
    part: list[Token] = []
    for token in tokens:
        if token.kind is not TokenKind.END and not token.is_symbol(";"):
            part.append(token)
            continue
        if part:
            yield [*part, Token(kind=TokenKind.END, value="", start=token.start, end=token.start)]
        part = []


def _statement(cursor: Cursor) -> Statement:
    for words, fix in _REFUSED.items():
        if cursor.at(*words):
            cursor.unsupported(" ".join(words), fix=fix)
    if at_query(cursor):
        return _query(cursor)
    if cursor.at("EXPLAIN"):
        return _explain(cursor)
    for words in _TABLE_STATEMENTS:
        if cursor.at(*words):
            return _table_statement(cursor, words)
    first = cursor.peek()
    taker = _TAKERS.get(first.value.upper()) if first.kind is TokenKind.WORD else None
    if taker is None or _is_of_spark(cursor):
        return left_to_spark(cursor, first.value.upper()[:40])
    return taker(cursor)


def _is_of_spark(cursor: Cursor) -> bool:
    """Whether a statement begins like one of this library, but is another one of Spark's."""
    return cursor.at("REPLACE") and not cursor.at("REPLACE", "TABLE")


def _query(cursor: Cursor) -> Statement:
    if cursor.at("FROM") or cursor.at("WITH"):
        inner = _statement_in_query(cursor)
        if inner is not None:
            return _insert_with(cursor, inner)
    query = take_query(cursor)
    cursor.expect_end("The query")
    return SelectStatement(query=query)


def _insert_with(cursor: Cursor, at: int) -> Statement:
    """`WITH ... INSERT INTO t query` as `INSERT INTO t WITH ... query`, which means the same."""
    sql, begin = cursor.source.sql, cursor.tokens[at].start
    insert = take_insert(
        Cursor(cursor.source, cursor.tokens[at:], bindings=cursor.bindings, lexis=cursor.lexis)
    )
    query = insert.query.start
    place = next(index for index, token in enumerate(cursor.tokens) if token.start >= query)
    if cursor.tokens[place].is_word("WITH") or any(token.is_symbol("?") for token in cursor.tokens):
        cursor.unsupported(
            "WITH before INSERT with a second WITH, or with ?",
            token=cursor.tokens[at],
            fix="Begin with INSERT INTO, and write the whole query after the name of the table.",
        )
    end = cursor.tokens[-1].start
    source = SqlSource(f"{sql[begin:query]} {sql[cursor.tokens[0].start : begin]} {sql[query:end]}")
    tokens = tokens_of(source, cursor.lexis)
    return take_insert(Cursor(source, tokens, bindings=cursor.bindings, lexis=cursor.lexis))


def _statement_in_query(cursor: Cursor) -> int | None:
    """The place of INSERT in `WITH ... INSERT`, in which a query is not all of the statement.

    Raises UnsupportedSqlError for other statements after a query.
    """
    depth = 0
    for index, token in enumerate(cursor.tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth or index == 0:
            continue
        after = cursor.tokens[min(index + 1, len(cursor.tokens) - 1)]
        pairs = (("INSERT", "INTO"), ("INSERT", "OVERWRITE"), ("MERGE", "INTO"), ("DELETE", "FROM"))
        for word, second in pairs:
            if token.is_word(word) and after.is_word(second):
                begin = cursor.peek().value.upper()
                if (begin, word) == ("WITH", "INSERT"):
                    return index
                cursor.unsupported(
                    f"{begin} before {word}",
                    token=token,
                    fix=f"Begin with {word} {second}, and write the query after the name of the table.",
                )
    return None


def _explain(cursor: Cursor) -> Statement:
    start = cursor.position
    cursor.expect("EXPLAIN")
    while cursor.at_any("EXTENDED", "CODEGEN", "COST", "FORMATTED"):
        cursor.next()
    if not at_query(cursor):
        return left_to_spark(cursor, "EXPLAIN", _named_tables(cursor))
    prefix = cursor.between(cursor.tokens[start].start, cursor.peek().start)
    query = take_query(cursor)
    cursor.expect_end("EXPLAIN")
    return SelectStatement(query=query, prefix=prefix)


def _named_tables(cursor: Cursor) -> tuple[TableReference, ...]:
    """The tables with a path in a statement that is left to Spark."""
    query = query_between(cursor, cursor.position, len(cursor.tokens) - 1)
    return tuple(found.table for found in query.tables)


def _table_statement(cursor: Cursor, words: tuple[str, ...]) -> SparkStatement:
    cursor.accept(*words)
    tables: tuple[TableReference, ...] = ()
    if words == ("LOAD", "DATA"):
        while not cursor.at_end and not cursor.accept("INTO", "TABLE"):
            cursor.next()
    cursor.accept("IF", "EXISTS")
    if not cursor.at_end:
        tables = (cursor.reference(),)
        while not cursor.at_end and not at_query(cursor):
            cursor.next()
        if at_query(cursor):
            tables = (*tables, *(found.table for found in take_query(cursor).tables))
    return SparkStatement(sql=whole(cursor), what=" ".join(words), tables=tables)
