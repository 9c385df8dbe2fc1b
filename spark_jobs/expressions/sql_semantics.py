"""Comparison of a session's SQL semantics with those of delta_core.

Spark evaluates SQL text with the session's settings. delta_core uses the same text only to prune files. When
the two may give different results, delta_core must not prune.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delta_core.expressions.ast import (
    And,
    Arithmetic,
    Call,
    Cast,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.expressions.columns import children
from delta_core.expressions.literals import DATETIMES, INTEGRAL_RANGES, literal_type
from delta_core.expressions.typing import type_of
from delta_core.schema.types import TIMESTAMP, TIMESTAMP_NTZ, VOID, DataType, StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UTC_NAMES: Final = frozenset(
    {"UTC", "ETC/UTC", "GMT", "ETC/GMT", "Z", "+00:00", "+0", "UTC+00:00", "GMT+00:00"}
)
# When a session has a different value, an operator, a cast or a function may return a different result.
_VALUES: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
}
_TIME_PARSER: Final = "spark.sql.legacy.timeParserPolicy"
# When a setting is true, its character has a meaning in SQL text that differs from that in delta_core.
_CHARACTERS: Final = {
    "spark.sql.parser.escapedStringLiterals": "\\",
    "spark.sql.ansi.doubleQuotedIdentifiers": '"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSemantics:
    """The SQL semantics of a session.

    Attributes:
        is_utc: whether the session converts strings and dates to the same instants as delta_core.
        is_usual: whether operators, casts and functions have the semantics of Spark's default settings.
        unlike: characters that mean something else in the session's SQL text than in delta_core.
    """

    is_utc: bool = True
    is_usual: bool = True
    unlike: str = ""

    @classmethod
    def of(cls, spark: SparkSession) -> SqlSemantics:
        """The session's current SQL semantics. Two requests on Connect."""
        settings = {key.casefold(): value for key, value in spark.conf.getAll.items()}
        usual = all(
            settings.get(key.casefold(), value).casefold() == value.casefold()
            for key, value in _VALUES.items()
        )
        usual = usual and settings.get(_TIME_PARSER.casefold(), "").upper() != "LEGACY"
        unlike = [
            characters
            for key, characters in _CHARACTERS.items()
            if settings.get(key.casefold(), "false").casefold() == "true"
        ]
        zone = spark.conf.get("spark.sql.session.timeZone") or ""
        return cls(is_utc=zone.strip().upper() in _UTC_NAMES, is_usual=usual, unlike="".join(unlike))

    def reads(self, sql: str) -> bool:
        """Whether the session parses the same names and string literals in the SQL text as delta_core."""
        return not any(character in sql for character in self.unlike)

    def agrees(self, expression: Expression, schema: StructType) -> bool:
        """Whether a parsed expression has the same value in the session and in delta_core."""
        if not self.is_utc and mentions_instants(expression, schema):
            return False
        return self.is_usual or _is_plain(expression, schema)


def mentions_instants(expression: Expression, schema: StructType) -> bool:
    """Whether a part of the expression is a timestamp, so that its value depends on the time zone."""
    if type_of(expression, schema) in (TIMESTAMP, TIMESTAMP_NTZ):
        return True
    return any(mentions_instants(part, schema) for part in children(expression))


def _same_type(left: DataType, right: DataType) -> bool:
    """Whether values of two types are compared without a cast. Integers of any width are."""
    integers = left in INTEGRAL_RANGES and right in INTEGRAL_RANGES
    return left == right or integers or VOID in (left, right)


def _is_plain(expression: Expression, schema: StructType) -> bool:
    """Whether an expression only compares columns and constants of one type."""
    match expression:
        case Arithmetic() | Cast() | Call():
            return False
        case Comparison(_, left, right):
            if not _same_type(type_of(left, schema), type_of(right, schema)):
                return False
        case In(operand, values):
            kind = type_of(operand, schema)
            if not all(_same_type(kind, literal_type(value)) for value in values):
                return False
        case Literal():
            # Some sessions compare a date with a string as strings.
            return literal_type(expression) not in DATETIMES
        case And() | Or() | Not() | IsNull() | Like():
            pass
    return all(_is_plain(part, schema) for part in children(expression))
