"""Definitions of columns in CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from typing import Any

from spark_jobs.sql_statements.parsing.cursor import Cursor
from spark_jobs.sql_statements.parsing.types import take_type
from spark_jobs.sql_statements.statements import ColumnDefinition, Identity


def take_column(cursor: Cursor, name: str | None = None) -> ColumnDefinition:
    """Take a column: name, type and options in any order.

    Args:
        cursor: the statement.
        name: the column's name when it is already taken.

    Raises:
        InvalidSqlError: the definition has a syntax error, or an option is given twice.
    """
    name = cursor.identifier("name of a column") if name is None else name
    cursor.accept_symbol(":")
    data_type = take_type(cursor)
    options: dict[str, Any] = {}

    def put(key: str, value: Any) -> None:
        if key in options:
            cursor.fail(f"The column {name} has two values for {key}", fix="Remove one of them.")
        options[key] = value

    while True:
        if cursor.accept("NOT", "NULL"):
            put("nullable", False)
        elif cursor.accept("NULL"):
            put("nullable", True)
        elif cursor.accept("COMMENT"):
            put("comment", cursor.string("comment"))
        elif cursor.accept("DEFAULT"):
            put("default", take_default(cursor))
        elif cursor.accept("GENERATED"):
            put(*_generation(cursor))
        elif cursor.at_any("PRIMARY", "UNIQUE", "REFERENCES", "CONSTRAINT", "CHECK", "MASK", "COLLATE"):
            cursor.unsupported(
                f"{cursor.peek().value.upper()} in the definition of a column",
                fix="Leave it out. Add a condition with ALTER TABLE ... ADD CONSTRAINT ... CHECK.",
            )
        else:
            return ColumnDefinition(name=name, data_type=data_type, **options)


_AFTER_DEFAULT = ("COMMENT", "FIRST", "AFTER", "GENERATED")


def take_default(cursor: Cursor) -> str:
    """Take the expression of a default, which ends before another option of the column."""
    first = cursor.position
    while not cursor.at_end and not cursor.at_any(*_AFTER_DEFAULT):
        token = cursor.peek()
        if token.is_symbol(",") or token.is_symbol(")"):
            break
        if cursor.position > first and cursor.at("NOT", "NULL"):
            break
        if token.is_symbol("("):
            cursor.next()
            if not cursor.peek().is_symbol(")"):
                cursor.slice("default")
            cursor.expect_symbol(")")
            continue
        cursor.next()
    if cursor.position == first:
        cursor.fail("The default is missing", fix="Write a constant such as 0 or 'new'.")
    return cursor.slice_of(first, cursor.position).sql


def _generation(cursor: Cursor) -> tuple[str, Any]:
    always = not cursor.accept("BY", "DEFAULT")
    if always:
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    if not cursor.accept("IDENTITY"):
        if not always:
            cursor.fail("IDENTITY is expected here")
        cursor.expect_symbol("(")
        expression = cursor.slice("generation expression").sql
        cursor.expect_symbol(")")
        return "generated", expression
    start, step = 1, 1
    if cursor.accept_symbol("("):
        while not cursor.accept_symbol(")"):
            if cursor.accept("START"):
                cursor.accept("WITH")
                start = cursor.integer("start of the identity column")
            elif cursor.accept("INCREMENT"):
                cursor.accept("BY")
                step = cursor.integer("step of the identity column")
            elif not cursor.accept_symbol(","):
                cursor.fail("START WITH or INCREMENT BY is expected here")
    return "identity", Identity(always=always, start=start, step=step)
