"""Values of parameters as constants in SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Literal
from delta_core.expressions.render import to_spark_sql
from delta_core.schema.types import LONG
from spark_jobs.sql_statements.parsing.tokens import Lexis

_KINDS = (bool, int, float, str, bytes, Decimal, dt.datetime, dt.date)
_INTS = range(-(2**31), 2**31)
_LONGS = range(-(2**63), 2**63)


def constant(name: str, value: Any, lexis: Lexis) -> str:
    """The value as a constant of Spark SQL, which is one token or one cast.

    Raises:
        ConfigurationError: the value is of a type that has no constant.
    """
    if isinstance(value, bytearray):
        value = bytes(value)
    if value is not None and not isinstance(value, _KINDS):
        raise ConfigurationError(
            f"The parameter {name} cannot be {value!r}.",
            cause=f"It is of type {type(value).__name__}.",
            fix="Pass a string, a number, a bool, bytes, a date, a datetime or None.",
        )
    if isinstance(value, str):
        return _string(value, lexis)
    if isinstance(value, int) and not isinstance(value, bool):
        if value in _INTS:
            return to_spark_sql(Literal(value))
        return (
            to_spark_sql(Literal(value, LONG)) if value in _LONGS else to_spark_sql(Literal(Decimal(value)))
        )
    return to_spark_sql(Literal(value))


def _string(value: str, lexis: Lexis) -> str:
    try:
        encoded = value.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            "A parameter contains an incomplete Unicode character.",
            cause=str(error),
            fix="Pass the complete character, or remove it.",
        ) from error
    if not lexis.escapes:
        # Without escapes, a quote or a backslash cannot be written in every session in the same way.
        return f"decode(X'{encoded.hex()}', 'UTF-8')"
    return to_spark_sql(Literal(value))
