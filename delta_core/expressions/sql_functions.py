"""Function names in SQL: Spark's dialect without sqlglot's rewriting of calls."""

from __future__ import annotations

from sqlglot.dialects.spark import Spark

from delta_core.expressions.functions import FUNCTIONS
from delta_core.schema.types import BINARY, BYTE, LONG, SHORT, DataType

FUNCTION_ALIASES = {
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "lcase": "lower",
    "ucase": "upper",
    "ceiling": "ceil",
    "cardinality": "size",
    "dayofmonth": "day",
    "dateadd": "date_add",
    "date_diff": "datediff",
}
"""Aliases of functions, and the names that are used here."""

CAST_NAMES: dict[str, DataType] = {"bigint": LONG, "smallint": SHORT, "tinyint": BYTE, "binary": BINARY}
"""Types whose name is a function that casts, beyond the types that the parser turns into casts."""

EXTRACTED_PARTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
}
"""The parts that EXTRACT and date_part support, and their functions. Seconds are not supported: extracted
seconds have fractions."""

# These functions have a syntax of their own: TRIM(BOTH ' ' FROM s), SUBSTRING(s FROM 1 FOR 3).
_PARSED = frozenset({"trim", "substring"})
_PLAIN = (
    {*FUNCTIONS, *FUNCTION_ALIASES, "equal_null", "date_part", "greatest", "least", "nvl2", "nullif"}
    - _PARSED
) | {"dateadd", "datediff"}


class PlainCalls(Spark):
    """Spark's SQL, where a call of a supported function stays a name with arguments.

    sqlglot rewrites many calls into nodes for translation into other dialects, for example with a pattern in
    another notation. Those nodes do not show how the call was written.
    """

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]
        """Spark's parser, which rewrites fewer functions."""

        FUNCTIONS = {  # noqa: RUF012 - an attribute that the base class defines
            name: build for name, build in Spark.Parser.FUNCTIONS.items() if name.lower() not in _PLAIN
        }
