"""Predicates in DataFusion's SQL, and filters of tuples, as predicates of `delta_core`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

from delta_core import expressions
from delta_core.deltalake._util import encode_partition_value
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import And, Column, Comparison, Expression, In, Literal, Not, Or
from delta_core.expressions.dnf import from_dnf
from delta_core.schema.types import STRING, StructType

Filter = str | Sequence[Any] | Expression

_TOKEN = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"")


def spark_sql(text: str | None) -> str | None:
    """The SQL text with names in backticks in place of double quotes, which are strings in Spark.

    A backslash in a string is kept as it is: Spark would read it as an escape. Two quotes in a string are one
    quote, which Spark reads as two strings.
    """
    return _TOKEN.sub(_requoted, text) if isinstance(text, str) else text


def _requoted(match: re.Match[str]) -> str:
    token = match[0]
    if token.startswith('"'):
        return "`" + token[1:-1].replace('""', '"').replace("`", "``") + "`"
    if not token.startswith("'"):
        return token
    return "'" + token[1:-1].replace("\\", "\\\\").replace("''", "\\'") + "'"


def duckdb_sql(text: str) -> str:
    """The query with names in double quotes in place of backticks, which DuckDB does not take."""
    return _TOKEN.sub(_double_quoted, text)


def _double_quoted(match: re.Match[str]) -> str:
    token = match[0]
    if not token.startswith("`"):
        return token
    return '"' + token[1:-1].replace("``", "`").replace('"', '""') + '"'


def coerced(text: str | None, schema: StructType) -> Expression | None:
    """The predicate of a SQL string, where a number next to a column of strings counts as a string.

    DataFusion compares them so; Spark would compare numbers, and `delta_core` refuses to guess.

    Raises:
        ExpressionError: the string is not a predicate.
    """
    return None if text is None else _coerced(expressions.parse(spark_sql(text) or ""), schema)


def _coerced(tree: Any, schema: StructType) -> Any:
    match tree:
        case And(terms) | Or(terms):
            return replace(tree, terms=tuple(_coerced(term, schema) for term in terms))
        case Not(operand):
            return Not(_coerced(operand, schema))
        case Comparison(operator, Column() as left, Literal() as right):
            return Comparison(operator, left, _of_column(right, left, schema))
        case Comparison(operator, Literal() as left, Column() as right):
            return Comparison(operator, _of_column(left, right, schema), right)
        case In(Column() as operand, values):
            return In(operand, tuple(_of_column(value, operand, schema) for value in values))
    return tree


def _of_column(literal: Literal, column: Column, schema: StructType) -> Literal:
    field = schema.find(column.path[0]) if len(column.path) == 1 else None
    is_number = isinstance(literal.value, int | float | Decimal) and not isinstance(literal.value, bool)
    return Literal(str(literal.value)) if is_number and field and field.data_type == STRING else literal


def predicate_of(filters: Filter | None) -> Expression | str | None:
    """A predicate of either form. An empty string in a filter of tuples stands for null.

    Raises:
        ConfigurationError, ExpressionError: the filters have another form.
    """
    if isinstance(filters, list | tuple):
        if not filters:
            return None
        return from_dnf(_encoded(filters), empty_is_null=True)
    if filters is None or isinstance(filters, Expression):
        return filters
    return spark_sql(cast(str, filters))


_OPERATORS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">=", "in", "not in"})


def require_valid_filters(filters: Filter | None, schema: StructType) -> None:
    """Refuse filters of tuples with an unknown operator, a list for one value, or an unknown column.

    Raises:
        ConfigurationError: such a filter, in the words of `deltalake`.
    """
    if not isinstance(filters, list | tuple):
        return
    for one in filters:
        if isinstance(one, list):
            require_valid_filters(one, schema)
        elif isinstance(one, tuple) and len(one) == 3 and isinstance(one[0], str):
            name, operator, value = one
            takes_list = str(operator).lower() in ("in", "not in")
            is_list = isinstance(value, list | tuple | set)
            if str(operator).lower() not in _OPERATORS or takes_list != is_list:
                shown = ", ".join(json.dumps(part, default=str) for part in (name, operator, value))
                raise ConfigurationError(f"Invalid partition filter found: ({shown}).")
            if schema.find(name) is None:
                raise ConfigurationError(
                    "Data does not match the schema or partitions of the table: "
                    f"Field '{name}' is not a root table field."
                )


def _encoded(filters: Sequence[Any]) -> list[Any]:
    """The filters with values as strings of the log, which are compared in the types of the columns."""
    if not (all(isinstance(one, list) for one in filters) or all(isinstance(one, tuple) for one in filters)):
        raise ConfigurationError(
            "The filters must be a list of (column, op, value) tuples (a conjunction), "
            "or a list of such lists (an OR across conjunctions), not a mix of both.",
            fix="Pass [('x', '=', 1)], or [[('x', '=', 1)], [('y', '=', 2)]].",
        )
    encoded: list[Any] = []
    for one in filters:
        if isinstance(one, list):
            if not one:
                raise ConfigurationError(
                    "An empty conjunction in filters; pass no filter to match all files.",
                    fix="Remove the empty list.",
                )
            encoded.append(_encoded(one))
        elif len(one) == 3 and isinstance(one[2], list | tuple | set):
            encoded.append((*one[:2], [_string(value) for value in one[2]]))
        else:
            encoded.append(one if len(one) != 3 else (*one[:2], _string(one[2])))
    return encoded


def _string(value: Any) -> str | None:
    return None if value is None else encode_partition_value(value)
