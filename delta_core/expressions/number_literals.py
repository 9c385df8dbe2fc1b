"""Numbers as SQL spells them, with all their digits."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from delta_core.expressions.ast import Literal
from delta_core.expressions.literals import INTEGRAL_RANGES
from delta_core.expressions.refusals import fail
from delta_core.schema.types import LONG

_LONGS = range(-INTEGRAL_RANGES[LONG], INTEGRAL_RANGES[LONG])


def number_of(text: str) -> int | float | Decimal:
    """The number that a text spells; integers beyond 64 bits are decimals, as in Spark.

    Raises:
        ExpressionError: it spells none.
    """
    try:
        if "e" in text.lower():
            return float(text)
        return int(text) if "." not in text and int(text) in _LONGS else Decimal(text)
    except (ValueError, InvalidOperation):
        fail(f"{text} is not a number", "Digits, one point and an exponent are known", "Correct it")


def negated(literal: Literal) -> Literal | None:
    """The number with the other sign; None for what is no number."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, Decimal):
        return Literal(value.copy_negate())  # `-value` rounds to 28 digits
    return Literal(number_of(str(-value)) if isinstance(value, int) else -value)
