"""Conditions that a table holds, as other engines have written them."""

from __future__ import annotations

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.parse import parse
from delta_core.expressions.quoted_names import quoted_name
from delta_core.expressions.sql_functions import PlainCalls
from delta_core.expressions.typing import resolve_predicate
from delta_core.schema.types import StructType


def parse_stored(text: str, schema: StructType) -> Expression:
    """The tree of a CHECK constraint or another expression of the table's, not yet resolved.

    It is Spark SQL, unless a part of it would look at no column while a text in it is called as one: then
    texts in double quotes that are columns' names are these columns, as the deltalake package writes them.

    Raises:
        ExpressionError: it is not understood.
    """
    expression = parse(text)
    return expression if quoted_name(expression, schema) is None else parse(_with_backticks(text, schema))


def resolve_stored(text: str, schema: StructType) -> Expression:
    """A condition of the table's, resolved; see `parse_stored`.

    Raises:
        ExpressionError: it is not understood, or does not fit the schema in either reading.
    """
    expression = parse_stored(text, schema)
    try:
        return resolve_predicate(expression, schema)
    except ExpressionError:
        # `"Low" <= high` names a column, so only the types tell that the text is another one.
        rewritten = _with_backticks(text, schema)
        if rewritten == text:
            raise
        return resolve_predicate(parse(rewritten), schema)


def _with_backticks(text: str, schema: StructType) -> str:
    pieces, end = [], 0
    for token in PlainCalls().tokenize(text):
        # Names that need quotes are those with capitals, so case tells a name from a text.
        if text[token.start] == '"' and token.text in schema.names:
            pieces += [text[end : token.start], "`", token.text.replace("`", "``"), "`"]
            end = token.end + 1
    return "".join([*pieces, text[end:]])
