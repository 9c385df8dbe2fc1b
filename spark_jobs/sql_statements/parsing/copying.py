"""COPY INTO."""

from __future__ import annotations

from typing import Final

from spark_jobs.sql_statements.parsing.cursor import Cursor
from spark_jobs.sql_statements.statements import CopyInto

_OPTIONS: Final = ("FORMAT_OPTIONS", "COPY_OPTIONS")


def take_copy(cursor: Cursor) -> CopyInto:
    """Take `COPY INTO`.

    Raises:
        InvalidSqlError: a clause is missing, or is given twice.
        UnsupportedSqlError: a clause is known, but not supported.
    """
    cursor.expect("COPY", "INTO")
    table = cursor.reference()
    columns, by_position = None, cursor.accept("BY", "POSITION")
    if cursor.peek().is_symbol("("):
        columns = cursor.in_brackets(lambda: cursor.identifier("name of a column"))
    cursor.expect("FROM")
    values, location = _source(cursor)
    if cursor.at("WITH"):
        cursor.unsupported(
            "COPY INTO ... WITH (CREDENTIAL ...)", fix="Configure the store for Spark, and leave it out."
        )
    cursor.expect("FILEFORMAT")
    cursor.expect_symbol("=")
    file_format = cursor.identifier("format").lower()
    files: tuple[str, ...] = ()
    pattern = None
    options: dict[str, dict[str, str]] = {}
    while not cursor.at_end:
        if cursor.at("VALIDATE"):
            cursor.unsupported("COPY INTO ... VALIDATE", fix="Leave it out.")
        elif cursor.at_any("FILES", "PATTERN") and (files or pattern is not None):
            cursor.fail("FILES and PATTERN exclude each other, and are given once", fix="Use one of them.")
        elif cursor.accept("FILES"):
            cursor.expect_symbol("=")
            files = cursor.in_brackets(lambda: cursor.string("file"))
        elif cursor.accept("PATTERN"):
            cursor.expect_symbol("=")
            pattern = cursor.string("pattern")
        elif cursor.at_any(*_OPTIONS):
            name = cursor.next().value.upper()
            if name in options:
                cursor.fail(f"{name} is given twice", fix="Give all options in one list.")
            cursor.accept_symbol("=")
            options[name] = cursor.properties("option")
        else:
            cursor.expect_end("COPY INTO")
    return CopyInto(
        table=table,
        location=location,
        file_format=file_format,
        columns=columns,
        by_position=by_position,
        values=values,
        files=files,
        pattern=pattern,
        format_options=options.get("FORMAT_OPTIONS", {}),
        copy_options=options.get("COPY_OPTIONS", {}),
    )


def _source(cursor: Cursor) -> tuple[tuple[str, ...], str]:
    """The expressions of `(SELECT ... FROM location)`, none without it, and the location."""
    if not cursor.accept_symbol("("):
        return (), cursor.string("location")
    cursor.expect("SELECT")
    values = [cursor.slice("expression", "FROM", in_list=True).sql]
    while cursor.accept_symbol(","):
        values.append(cursor.slice("expression", "FROM", in_list=True).sql)
    cursor.expect("FROM")
    location = cursor.string("location")
    if not cursor.peek().is_symbol(")"):
        cursor.unsupported(
            f"COPY INTO from a query with {cursor.peek().value.upper()}",
            fix="Use INSERT INTO ... SELECT for queries of more than expressions over the files.",
        )
    cursor.expect_symbol(")")
    return tuple(values), location
