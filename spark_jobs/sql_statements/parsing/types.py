"""Types in SQL: `BIGINT`, `DECIMAL(10, 2)`, `ARRAY<STRUCT<a: INT NOT NULL>>`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delta_core.errors import SchemaError
from delta_core.schema.field_metadata import COMMENT_KEY, with_metadata
from delta_core.schema.json import type_from_name
from delta_core.schema.types import ArrayType, DataType, MapType, StructField, StructType
from spark_jobs.sql_statements.parsing.cursor import Cursor
from spark_jobs.sql_statements.parsing.tokens import Token, TokenKind

MAX_TYPE_DEPTH: Final = 32
"""The maximum depth of nested types."""

_NAMES: Final = {
    "BOOLEAN": "boolean",
    "TINYINT": "byte",
    "BYTE": "byte",
    "SMALLINT": "short",
    "SHORT": "short",
    "INT": "integer",
    "INTEGER": "integer",
    "BIGINT": "long",
    "LONG": "long",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "VARIANT": "variant",
}


def take_type(cursor: Cursor, depth: int = 0) -> DataType:
    """Take a type.

    Raises:
        InvalidSqlError: no type is next, or Delta does not have it.
    """
    token = cursor.peek()
    if depth > MAX_TYPE_DEPTH:
        cursor.fail(
            "The type is nested too deeply", cause=f"The limit is {MAX_TYPE_DEPTH} levels.", fix="Flatten it."
        )
    if token.kind is not TokenKind.WORD:
        cursor.fail("A type is expected here", fix="Write a type such as BIGINT or STRING.")
    word = cursor.next().value.upper()
    if word == "ARRAY":
        _expect_open(cursor)
        element = take_type(cursor, depth + 1)
        _expect_close(cursor)
        return ArrayType(element_type=element, contains_null=True)
    if word == "MAP":
        _expect_open(cursor)
        key = take_type(cursor, depth + 1)
        cursor.expect_symbol(",")
        value = take_type(cursor, depth + 1)
        _expect_close(cursor)
        return MapType(key_type=key, value_type=value, value_contains_null=True)
    if word == "STRUCT":
        return _struct(cursor, depth)
    if word in ("DECIMAL", "DEC", "NUMERIC"):
        return _decimal(cursor, token)
    if word in ("VARCHAR", "CHAR", "CHARACTER"):
        cursor.unsupported(
            f"The type {word}",
            token=token,
            fix="Use STRING, with a CHECK constraint on its length if needed.",
        )
    name = _NAMES.get(word)
    if name is None:
        cursor.fail(
            f"The type {word} does not exist",
            token=token,
            cause=f"The types are {', '.join(sorted(_NAMES))}, DECIMAL, ARRAY, MAP and STRUCT.",
            fix="Use one of these types.",
        )
    return type_from_name(name)


def _decimal(cursor: Cursor, token: Token) -> DataType:
    digits = [10, 0]
    if cursor.accept_symbol("("):
        digits = [cursor.integer("precision"), 0]
        if cursor.accept_symbol(","):
            digits[1] = cursor.integer("scale")
        cursor.expect_symbol(")")
    try:
        return type_from_name(f"decimal({digits[0]},{digits[1]})")
    except SchemaError as error:
        cursor.fail(
            f"DECIMAL({digits[0]}, {digits[1]}) is not a type",
            token=token,
            cause=error.cause,
            fix="Use a precision of at most 38.",
        )


def _struct(cursor: Cursor, depth: int) -> StructType:
    _expect_open(cursor)
    fields: list[StructField] = []
    while True:
        name = cursor.identifier("name of a field")
        cursor.accept_symbol(":")
        field = StructField(name=name, data_type=take_type(cursor, depth + 1), nullable=True)
        if cursor.accept("NOT", "NULL"):
            field = replace(field, nullable=False)
        if cursor.accept("COMMENT"):
            field = with_metadata(field, {COMMENT_KEY: cursor.string("comment")})
        fields.append(field)
        if not cursor.accept_symbol(","):
            break
    _expect_close(cursor)
    return StructType(tuple(fields))


def _expect_open(cursor: Cursor) -> None:
    cursor.expect_symbol("<")


def _expect_close(cursor: Cursor) -> None:
    """Take one `>`. Several of them in a row are one token, which is taken piece by piece."""
    token = cursor.peek()
    if token.kind is TokenKind.SYMBOL and token.value in (">>", ">>>"):
        cursor.tokens = [
            *cursor.tokens[: cursor.position],
            replace(token, value=">", end=token.start + 1),
            replace(token, value=token.value[1:], start=token.start + 1),
            *cursor.tokens[cursor.position + 1 :],
        ]
    cursor.expect_symbol(">")
