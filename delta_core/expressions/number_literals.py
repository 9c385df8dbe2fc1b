"""Numeric literals of SQL, read without loss of digits."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from delta_core.expressions.ast import Literal
from delta_core.expressions.literals import INTEGRAL_RANGES
from delta_core.expressions.unsupported_sql import fail
from delta_core.schema.types import LONG

_LONGS = range(-INTEGRAL_RANGES[LONG], INTEGRAL_RANGES[LONG])


def parse_number(text: str) -> int | float | Decimal:
    """The number that a literal represents; integers beyond 64 bits become decimals, as in Spark.

    Raises:
        ExpressionError: the literal is not a number.
    """
    try:
        if "e" in text.lower():
            return float(text)
        return int(text) if "." not in text and int(text) in _LONGS else Decimal(text)
    except (ValueError, InvalidOperation):
        fail(
            f"{text} is not a number.",
            "A number has digits, at most one point and an exponent.",
            "Correct the number.",
        )


def negated(literal: Literal) -> Literal | None:
    """The number with the opposite sign; None when the literal is not a number."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, Decimal):
        return Literal(value.copy_negate())  # `-value` rounds to 28 digits
    return Literal(parse_number(str(-value)) if isinstance(value, int) else -value)
