"""Expressions of a statement that may use only some tables (`table_roots`): they read none by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from delta_core.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructType
from spark_jobs.sql_statements.execution.surroundings import Surroundings
from spark_jobs.sql_statements.parsing.tokens import SqlSource, TokenKind, tokens_of
from spark_jobs.sql_statements.statements import Query, Slice, Statement, TableReference

_READING: Final = frozenset({"SELECT", "FROM", "TABLE", "VALUES", "WITH", "JOIN", "IDENTIFIER"})
"""Words that a subquery has."""

_EXPRESSIONS: Final = frozenset(
    {"assignments", "partition", "condition", "values", "default", "generated", "constraints", "clauses"}
)
"""The fields of statements whose strings are expressions."""


def require_plain_expressions(statement: Statement, around: Surroundings) -> None:
    """Refuse subqueries outside of queries, since Spark would find their tables by itself.

    Raises:
        PathEscapeError: only some tables are allowed, and an expression may read others.
    """
    if not around.table_roots:
        return
    for sql in _expressions(statement):
        for token in tokens_of(SqlSource(sql), around.lexis):
            if token.kind is TokenKind.WORD and token.value.upper() in _READING:
                around.require_all_allowed(f"{token.value.upper()} in the expression {sql[:100]}")


def _expressions(value: object, *, is_expression: bool = False) -> Iterator[str]:
    """The expressions in a statement, and in the time travel of the tables of its queries."""
    match value:
        case Slice(sql=sql):
            yield sql
        case Query(tables=tables):
            for found in tables:
                yield from _expressions(found.table)
        case TableReference(timestamp=timestamp):
            if timestamp is not None:
                yield timestamp.sql
        case str():
            if is_expression:
                yield value
        case PrimitiveType() | DecimalType() | ArrayType() | MapType() | StructType() | Enum():
            pass
        case Mapping():
            for item in value.values():
                yield from _expressions(item, is_expression=is_expression)
        case tuple() | list():
            for item in value:
                yield from _expressions(item, is_expression=is_expression)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for item in fields(value):
                yield from _expressions(getattr(value, item.name), is_expression=item.name in _EXPRESSIONS)
