"""The row condition of an expectation, which selects the rows to evaluate.

With any `condition_parser`, a condition is parsed as a predicate of this project (docs/predicates.md), so
that `m > 0` has the same meaning in every engine. Great Expectations' structured conditions become predicates
too; their constants have the column's type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import quote_name, quote_string
from delta_core.schema.types import BOOLEAN, STRING, DataType, StructType
from spark_jobs.quality.suite_values import InapplicableError, is_moment, typed_value

_OPERATORS: Final = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LISTS: Final = {"IN": "IN", "NOT_IN": "NOT IN"}
_COLUMN_CALL: Final = re.compile(r"""\bcol\(\s*(["'])([^"'`]+)\1\s*\)""")
_PRESENCE: Final = {".notNull()": " IS NOT NULL", ".isNull()": " IS NULL"}


def row_condition(condition: object, schema: StructType) -> Expression | None:
    """A condition as a resolved predicate; None for None.

    Raises:
        InapplicableError: the condition is not a predicate on rows of this schema.
    """
    if condition is None:
        return None
    if not isinstance(condition, (str, Mapping)):
        raise InapplicableError(
            f"The argument `row_condition` must be a string or an object, not {condition!r}."
        )
    sql = _from_string(condition) if isinstance(condition, str) else _structured(condition, schema)
    try:
        return parse_predicate(sql, schema)
    except ExpressionError as error:
        raise InapplicableError(f"The argument `row_condition` is not a valid predicate: {error}") from error


def _from_string(condition: str) -> str:
    """The condition with Great Expectations' column syntax replaced by that of predicates."""
    sql = _COLUMN_CALL.sub(lambda match: quote_name(match[2]), condition)
    if sql != condition:
        for call, test in _PRESENCE.items():
            sql = sql.replace(call, test)
    return sql


def _structured(condition: Mapping[str, Any], schema: StructType) -> str:
    kind = condition.get("type")
    if kind in ("and", "or"):
        parts = [_structured(part, schema) for part in condition.get("conditions") or ()]
        if not parts:
            raise InapplicableError("The argument `row_condition` has an empty list of conditions.")
        return "(" + f" {kind.upper()} ".join(parts) + ")"
    column = condition.get("column")
    name = column.get("name") if isinstance(column, Mapping) else column
    field = schema.find(name) if isinstance(name, str) else None
    if field is None:
        raise InapplicableError(
            f"The argument `row_condition` names the column {name!r}, which the rows do not have."
        )
    quoted_column = quote_name(field.name)
    if kind == "nullity":
        return f"{quoted_column} IS {'NULL' if condition.get('is_null') else 'NOT NULL'}"
    operator, parameter = condition.get("operator"), condition.get("parameter")
    if kind == "comparison" and operator in _OPERATORS:
        return f"{quoted_column} {_OPERATORS[operator]} {_constant(parameter, field.data_type)}"
    if kind == "comparison" and operator in _LISTS and isinstance(parameter, (list, tuple)) and parameter:
        literals = ", ".join(_constant(value, field.data_type) for value in parameter)
        return f"{quoted_column} {_LISTS[operator]} ({literals})"
    raise InapplicableError(f"The argument `row_condition` has an unsupported form: {dict(condition)!r}.")


def _constant(value: Any, data_type: DataType) -> str:
    typed = typed_value(value, data_type)
    if data_type == BOOLEAN:
        return "TRUE" if typed else "FALSE"
    if data_type == STRING:
        return quote_string(typed)
    if is_moment(data_type):
        return quote_string(typed.isoformat())
    return f"{typed:f}" if isinstance(typed, Decimal) else f"{typed!r}D"
