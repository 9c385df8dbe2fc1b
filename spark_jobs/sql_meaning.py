"""What a session's settings make of SQL text that its user wrote, beside what delta_core makes of it.

Spark decides by such text, as its session says; delta_core only leaves files out by it. Where the two may
differ, it must not.
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
# Where one of these is set otherwise, an operator, a cast or a function may give another value.
_VALUES: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
}
_TIME_PARSER: Final = "spark.sql.legacy.timeParserPolicy"
# Where one of these is on, the characters mean something else in text.
_CHARACTERS: Final = {
    "spark.sql.parser.escapedStringLiterals": "\\",
    "spark.sql.ansi.doubleQuotedIdentifiers": '"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlMeaning:
    """How a session reads SQL text.

    Attributes:
        is_utc: whether it takes texts and dates for the instants that delta_core does.
        is_usual: whether operators, casts and functions give what Spark's defaults make them give.
        unlike: characters that mean something else in its text.
    """

    is_utc: bool = True
    is_usual: bool = True
    unlike: str = ""

    @classmethod
    def of(cls, spark: SparkSession) -> SqlMeaning:
        """The session's meaning now. On Connect two requests."""
        given = {key.casefold(): value for key, value in spark.conf.getAll.items()}
        usual = all(
            given.get(key.casefold(), value).casefold() == value.casefold() for key, value in _VALUES.items()
        )
        usual = usual and given.get(_TIME_PARSER.casefold(), "").upper() != "LEGACY"
        unlike = [
            characters
            for key, characters in _CHARACTERS.items()
            if given.get(key.casefold(), "false").casefold() == "true"
        ]
        zone = spark.conf.get("spark.sql.session.timeZone") or ""
        return cls(is_utc=zone.strip().upper() in _UTC_NAMES, is_usual=usual, unlike="".join(unlike))

    def reads(self, text: str) -> bool:
        """Whether the session finds the same names and texts in it as delta_core."""
        return not any(character in text for character in self.unlike)

    def agrees(self, expression: Expression, schema: StructType) -> bool:
        """Whether an expression that was parsed from text has the same value for session and delta_core."""
        if not self.is_utc and mentions_instants(expression, schema):
            return False
        return self.is_usual or _is_plain(expression, schema)


def mentions_instants(expression: Expression, schema: StructType) -> bool:
    """Whether a part of the expression is a timestamp: what it means then depends on the time zone."""
    if type_of(expression, schema) in (TIMESTAMP, TIMESTAMP_NTZ):
        return True
    return any(mentions_instants(part, schema) for part in children(expression))


def _alike(left: DataType, right: DataType) -> bool:
    """Whether values of two types are compared as they are; whole numbers of any width are."""
    whole = left in INTEGRAL_RANGES and right in INTEGRAL_RANGES
    return left == right or whole or VOID in (left, right)


def _is_plain(expression: Expression, schema: StructType) -> bool:
    """Whether an expression compares columns and constants of one type, and does nothing else."""
    match expression:
        case Arithmetic() | Cast() | Call():
            return False
        case Comparison(_, left, right):
            if not _alike(type_of(left, schema), type_of(right, schema)):
                return False
        case In(operand, values):
            kind = type_of(operand, schema)
            if not all(_alike(kind, literal_type(value)) for value in values):
                return False
        case Literal():
            # In some sessions a date beside a text is compared as text.
            return literal_type(expression) not in DATETIMES
        case And() | Or() | Not() | IsNull() | Like():
            pass
    return all(_is_plain(part, schema) for part in children(expression))
