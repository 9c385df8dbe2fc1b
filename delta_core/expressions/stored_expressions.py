"""CHECK constraints and generation expressions stored in a table, as other engines write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Call, Expression
from delta_core.expressions.columns import walk
from delta_core.expressions.parse import parse
from delta_core.expressions.sql_functions import PlainCalls
from delta_core.expressions.typing import quoted_name, resolve_predicate
from delta_core.schema.types import StructType

_ARROW_CAST = "arrow_cast"
_ARROW_TIMESTAMP = re.compile(r'Timestamp\(\w+, (None|Some\("(UTC|\+00:00)"\))\)')


def parse_stored(text: str, schema: StructType) -> Expression:
    """The tree of a CHECK constraint or generation expression of the table, not yet resolved.

    The expression is read as Spark SQL, with one exception. When a part of it refers to no column but
    contains a string equal to a column name, the deltalake package wrote it: strings in double quotes that
    are column names are then read as columns. The deltalake package's timestamp constants,
    `arrow_cast('...', 'Timestamp(...)')`, are read as timestamps.

    Raises:
        ExpressionError: the expression is not supported.
    """
    expression = parse(text)
    of_arrow = any(isinstance(node, Call) and node.name.lower() == _ARROW_CAST for node in walk(expression))
    if not of_arrow and quoted_name(expression, schema) is None:
        return expression
    return parse(_in_spark_sql(text, schema))


def resolve_stored(text: str, schema: StructType) -> Expression:
    """A condition of the table, resolved; see `parse_stored`.

    Raises:
        ExpressionError: the condition is not supported, or does not fit the schema, whether a word in
            double quotes is a string or a column.
    """
    expression = parse_stored(text, schema)
    try:
        return resolve_predicate(expression, schema)
    except ExpressionError:
        # `"Low" <= high` refers to a column, so only the types show that "Low" is meant as a column as well.
        rewritten = _in_spark_sql(text, schema)
        if rewritten == text:
            raise
        return resolve_predicate(parse(rewritten), schema)


def _in_spark_sql(text: str, schema: StructType) -> str:
    pieces, end = [], 0
    for start, stop, piece in _replacements(text, PlainCalls().tokenize(text), schema):
        pieces += [text[end:start], piece]
        end = stop
    return "".join([*pieces, text[end:]])


def _replacements(text: str, tokens: Sequence[Any], schema: StructType) -> Iterator[tuple[int, int, str]]:
    for index, token in enumerate(tokens):
        # Only names with capitals need quotes, so the exact case distinguishes a name from a string.
        if text[token.start] == '"' and token.text in schema.names:
            yield token.start, token.end + 1, f"`{token.text.replace('`', '``')}`"
        elif token.text.lower() == _ARROW_CAST and len(tokens) > index + 5:
            _, value, _, target, closing = tokens[index + 1 : index + 6]
            kind = _ARROW_TIMESTAMP.fullmatch(target.text)
            if kind is not None and text[value.start] == "'" and closing.text == ")":
                name = "TIMESTAMP_NTZ" if kind[1] == "None" else "TIMESTAMP"
                yield token.start, closing.end + 1, f"{name} {text[value.start : value.end + 1]}"
