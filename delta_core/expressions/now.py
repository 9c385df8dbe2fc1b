"""Constants that may be the present time: what the default of a column is made of.

Conditions and generated columns must mean the same whenever they are evaluated, so `parse` refuses the
present time by itself; a default is worked out once for a statement, with the statement's time.
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
    """An expression without columns, as Spark SQL text, with the time that counts as the present.

    Args:
        text: such as `42`, `upper('a')`, `current_timestamp()` or `current_date()`.
        now_us: the present, in microseconds since the epoch; dates and times without a zone are of UTC.

    Raises:
        ExpressionError: it names a column, or something that is no expression here; says what.
    """
    expression = parse(text, now=_EPOCH + dt.timedelta(microseconds=now_us))
    columns = referenced_columns(expression)
    if columns:
        name = ".".join(min(columns))
        raise ExpressionError(
            f"{text} is not a constant",
            cause=f"It names the column {name}",
            fix="Write a text in single quotes; a default cannot depend on other columns",
        )
    return resolve(expression, StructType(()))
