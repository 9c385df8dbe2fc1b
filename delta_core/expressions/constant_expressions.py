"""Constant expressions that may contain the present time, as used in column defaults.

Conditions and generated columns must have the same meaning at every evaluation, so `parse` refuses
functions of the present time. A default is evaluated once per statement, with the time of the statement.
"""

from __future__ import annotations

import datetime as dt

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.parse import parse
from delta_core.expressions.typing import resolve
from delta_core.schema.types import StructType

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def parse_constant(text: str, *, now_us: int) -> Expression:
    """A constant expression in Spark SQL, with a fixed present time.

    Args:
        text: such as `42`, `upper('a')`, `current_timestamp()` or `current_date()`.
        now_us: the present, in microseconds since the epoch. Dates and times without a zone are in UTC.

    Raises:
        ExpressionError: the expression refers to a column, or is not supported; the message names the part.
    """
    expression = parse(text, now=_EPOCH + dt.timedelta(microseconds=now_us))
    columns = referenced_columns(expression)
    if columns:
        name = ".".join(min(columns))
        raise ExpressionError(
            f"{text} is not a constant.",
            cause=f"It refers to the column {name}.",
            fix="Write strings in single quotes; a default cannot depend on other columns.",
        )
    return resolve(expression, StructType(()))
