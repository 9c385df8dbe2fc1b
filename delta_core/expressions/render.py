"""Rendering of expressions as Spark SQL, with every name and constant quoted.

The SQL parses back to the same expression, so plans and commit provenance can store it, and an engine only
receives SQL that has been parsed before.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

from delta_core.expressions.ast import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.schema.types import (
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    VOID,
    DataType,
    DecimalType,
    PrimitiveType,
)

_TYPE_NAMES: dict[str, str] = {
    "long": "BIGINT",
    "integer": "INT",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP_NTZ",
}
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}


def to_spark_sql(expression: Expression) -> str:
    """The expression as Spark SQL. Timestamps include their zone, so the session's zone has no effect."""
    match expression:
        case Column(path):
            return ".".join(quote_name(part) for part in path)
        case Literal():
            return _literal(expression)
        case Comparison():
            return f"({to_spark_sql(expression.left)} {expression.operator} {to_spark_sql(expression.right)})"
        case Arithmetic():
            return f"({to_spark_sql(expression.left)} {expression.operator} {to_spark_sql(expression.right)})"
        case And(terms):
            return "(" + " AND ".join(to_spark_sql(term) for term in terms) + ")"
        case Or(terms):
            return "(" + " OR ".join(to_spark_sql(term) for term in terms) + ")"
        case Not(IsNull(operand)):
            return f"({to_spark_sql(operand)} IS NOT NULL)"
        case Not(operand):
            return f"(NOT {to_spark_sql(operand)})"
        case IsNull(operand):
            return f"({to_spark_sql(operand)} IS NULL)"
        case In(operand, values):
            return f"({to_spark_sql(operand)} IN ({', '.join(to_spark_sql(value) for value in values)}))"
        case Like(operand, pattern):
            return f"({to_spark_sql(operand)} LIKE {quote_string(pattern)})"
        case Cast(operand, data_type):
            return f"CAST({to_spark_sql(operand)} AS {spark_type(data_type)})"
        case Call("case", (*pairs, otherwise)):
            whens = " ".join(
                f"WHEN {to_spark_sql(condition)} THEN {to_spark_sql(value)}"
                for condition, value in zip(pairs[::2], pairs[1::2], strict=True)
            )
            return f"CASE {whens} ELSE {to_spark_sql(otherwise)} END"
        case Call(name, arguments):
            return f"{name}({', '.join(to_spark_sql(argument) for argument in arguments)})"


def quote_name(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quote_string(string: str) -> str:
    """A string constant, escaped."""
    return "'" + "".join(_ESCAPES.get(character, character) for character in string) + "'"


def spark_type(data_type: DataType) -> str:
    """The Spark SQL name of a primitive or decimal type."""
    if isinstance(data_type, PrimitiveType):
        return _TYPE_NAMES.get(data_type.name, data_type.name.upper())
    return str(data_type).upper()


def _literal(literal: Literal) -> str:
    value, data_type = literal.value, literal.data_type
    match value:
        case None:
            return "NULL" if data_type in (None, VOID) else f"CAST(NULL AS {spark_type(data_type)})"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            text = str(value)
            if isinstance(data_type, DecimalType):
                return f"CAST('{text}' AS {spark_type(data_type)})"
            if data_type in (BYTE, SHORT, LONG):
                return f"CAST({text} AS {spark_type(data_type)})"
            return text if data_type in (None, INTEGER) else f"CAST({text} AS {spark_type(DOUBLE)})"
        case float():
            if math.isfinite(value):
                # repr always has a point or an exponent; without an exponent Spark reads a decimal.
                text = repr(value)
                text = text if "e" in text else f"{text}e0"
            else:
                text = "'NaN'" if math.isnan(value) else ("'Infinity'" if value > 0 else "'-Infinity'")
                return f"CAST({text} AS {spark_type(data_type or DOUBLE)})"
            return f"CAST({text} AS FLOAT)" if data_type == FLOAT else text
        case Decimal():
            kind = data_type if isinstance(data_type, DecimalType) else None
            text = format(value, "f")
            return text if kind is None and "." in text else f"CAST('{text}' AS {_decimal_name(value, kind)})"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case dt.datetime():
            naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            text = naive.isoformat(sep=" ", timespec="microseconds")
            return f"TIMESTAMP_NTZ '{text}'" if value.tzinfo is None else f"TIMESTAMP '{text}+00:00'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    return quote_string(str(value))


def _decimal_name(value: Decimal, kind: DecimalType | None) -> str:
    if kind is not None:
        return spark_type(kind)
    return f"DECIMAL({len(format(value, 'f').lstrip('-'))},0)"
