"""DESCRIBE and SHOW."""

from __future__ import annotations

from typing import Final

from spark_jobs.sql_statements.parsing.create import left_to_spark, whole
from spark_jobs.sql_statements.parsing.cursor import Cursor
from spark_jobs.sql_statements.parsing.tokens import TokenKind
from spark_jobs.sql_statements.statements import (
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    Shown,
    ShowTable,
    Statement,
    TableReference,
)

_NOT_TABLES: Final = (
    "DATABASE",
    "SCHEMA",
    "FUNCTION",
    "CATALOG",
    "QUERY",
    "CONNECTION",
    "VOLUME",
    "NAMESPACE",
)
_QUERIES: Final = ("SELECT", "WITH", "VALUES", "FROM")


def take_describe(cursor: Cursor) -> Statement:
    """Take `DESCRIBE` of a table, its history or its detail; leave others to Spark."""
    cursor.next()
    # A table may have the name history or detail: DESCRIBE HISTORY needs a name after it.
    named = cursor.peek(1).kind in (TokenKind.WORD, TokenKind.NAME)
    if cursor.at("HISTORY") and (named or cursor.peek(1).kind is TokenKind.STRING):
        cursor.next()
        table = _table(cursor)
        limit = cursor.integer("limit") if cursor.accept("LIMIT") else None
        cursor.expect_end("DESCRIBE HISTORY")
        return DescribeHistory(table=table, limit=limit)
    if cursor.at("DETAIL") and (named or cursor.peek(1).kind is TokenKind.STRING):
        cursor.next()
        table = _table(cursor)
        cursor.expect_end("DESCRIBE DETAIL")
        return DescribeDetail(table=table)
    if cursor.at_any(*_NOT_TABLES, *_QUERIES) or cursor.peek().is_symbol("("):
        return left_to_spark(cursor, "DESCRIBE")
    cursor.accept("TABLE")
    extended = cursor.accept("EXTENDED") or cursor.accept("FORMATTED")
    table = cursor.reference()
    if cursor.at("PARTITION") or cursor.at("AS", "JSON"):
        return left_to_spark(cursor, f"DESCRIBE TABLE ... {cursor.peek().value.upper()}", (table,))
    column = None if cursor.at_end else cursor.path("name of a column")
    cursor.expect_end("DESCRIBE TABLE")
    return DescribeTable(table=table, extended=extended, column=column, sql=whole(cursor))


def _table(cursor: Cursor) -> TableReference:
    cursor.accept("TABLE")
    if cursor.peek().kind is TokenKind.STRING:
        token = cursor.peek()
        return TableReference(parts=("delta", cursor.string("path")), start=token.start, end=token.end)
    return cursor.reference()


def take_show(cursor: Cursor) -> Statement:
    """Take `SHOW` of a part of a table's definition; leave others to Spark."""
    cursor.expect("SHOW")
    if cursor.accept("TBLPROPERTIES"):
        table = cursor.reference()
        key = None
        if cursor.accept_symbol("("):
            key = cursor.property_key()
            cursor.expect_symbol(")")
        cursor.expect_end("SHOW TBLPROPERTIES")
        return ShowTable(table=table, what=Shown.PROPERTIES, key=key, sql=whole(cursor))
    if cursor.accept("CREATE", "TABLE"):
        table = cursor.reference()
        cursor.expect_end("SHOW CREATE TABLE")
        return ShowTable(table=table, what=Shown.CREATE, sql=whole(cursor))
    if cursor.accept("PARTITIONS"):
        table = cursor.reference()
        if cursor.at("PARTITION"):
            cursor.unsupported("SHOW PARTITIONS ... PARTITION", fix="Select from the table with a condition.")
        cursor.expect_end("SHOW PARTITIONS")
        return ShowTable(table=table, what=Shown.PARTITIONS, sql=whole(cursor))
    if cursor.accept("COLUMNS"):
        if not cursor.accept("IN"):
            cursor.expect("FROM")
        table = cursor.reference()
        if cursor.accept("IN") or cursor.accept("FROM"):
            database = cursor.path("name of a database")
            table = TableReference(parts=(*database, table.parts[-1]), start=table.start, end=table.end)
        cursor.expect_end("SHOW COLUMNS")
        return ShowTable(table=table, what=Shown.COLUMNS, sql=whole(cursor))
    return left_to_spark(cursor, "SHOW")
