"""The row condition of an expectation: which rows it is about.

Whatever parser it names, text is read as a predicate of this project (docs/predicates.md), so `m > 0` means
the same everywhere; so are Great Expectations' structured conditions, whose constants take the column's type.
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
from spark_jobs.quality.suite_values import MisfitError, is_moment, typed_value

_OPERATORS: Final = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LISTS: Final = {"IN": "IN", "NOT_IN": "NOT IN"}
_COLUMN_CALL: Final = re.compile(r"""\bcol\(\s*(["'])([^"'`]+)\1\s*\)""")
_PRESENCE: Final = {".notNull()": " IS NOT NULL", ".isNull()": " IS NULL"}


def row_condition(condition: object, schema: StructType) -> Expression | None:
    """A condition as a resolved predicate; None for none.

    Raises:
        MisfitError: it is no predicate on rows of this schema.
    """
    if condition is None:
        return None
    if not isinstance(condition, (str, Mapping)):
        raise MisfitError(f"row_condition is {condition!r}")
    text = _string(condition) if isinstance(condition, str) else _structured(condition, schema)
    try:
        return parse_predicate(text, schema)
    except ExpressionError as error:
        raise MisfitError(f"its row_condition is no predicate: {error}") from error


def _string(condition: str) -> str:
    """Great Expectations' own spelling of columns as that of predicates."""
    text = _COLUMN_CALL.sub(lambda found: quote_name(found[2]), condition)
    if text != condition:
        for call, test in _PRESENCE.items():
            text = text.replace(call, test)
    return text


def _structured(condition: Mapping[str, Any], schema: StructType) -> str:
    kind = condition.get("type")
    if kind in ("and", "or"):
        parts = [_structured(part, schema) for part in condition.get("conditions") or ()]
        if not parts:
            raise MisfitError("its row_condition has no conditions")
        return "(" + f" {kind.upper()} ".join(parts) + ")"
    column = condition.get("column")
    name = column.get("name") if isinstance(column, Mapping) else column
    field = schema.find(name) if isinstance(name, str) else None
    if field is None:
        raise MisfitError(f"its row_condition is about a column {name!r} that the rows do not have")
    spelled = quote_name(field.name)
    if kind == "nullity":
        return f"{spelled} IS {'NULL' if condition.get('is_null') else 'NOT NULL'}"
    operator, parameter = condition.get("operator"), condition.get("parameter")
    if kind == "comparison" and operator in _OPERATORS:
        return f"{spelled} {_OPERATORS[operator]} {_constant(parameter, field.data_type)}"
    if kind == "comparison" and operator in _LISTS and isinstance(parameter, (list, tuple)) and parameter:
        listed = ", ".join(_constant(value, field.data_type) for value in parameter)
        return f"{spelled} {_LISTS[operator]} ({listed})"
    raise MisfitError(f"its row_condition is {dict(condition)!r}")


def _constant(value: Any, data_type: DataType) -> str:
    typed = typed_value(value, data_type)
    if data_type == BOOLEAN:
        return "TRUE" if typed else "FALSE"
    if data_type == STRING:
        return quote_string(typed)
    if is_moment(data_type):
        return quote_string(typed.isoformat())
    return f"{typed:f}" if isinstance(typed, Decimal) else f"{typed!r}D"
