"""How SQL text names functions: Spark's dialect without sqlglot's rewriting of calls."""

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
"""Other names of functions, as written, and the one that they have here."""

CAST_NAMES: dict[str, DataType] = {"bigint": LONG, "smallint": SHORT, "tinyint": BYTE, "binary": BINARY}
"""Types whose name as a function casts, beyond those that the parser turns into casts by itself."""

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
"""The parts that EXTRACT and date_part take, and the functions that give them. Seconds are not among them:
extracted, they have fractions."""

# Their arguments have a syntax of their own: TRIM(BOTH ' ' FROM s), SUBSTRING(s FROM 1 FOR 3).
_PARSED = frozenset({"trim", "substring"})
_PLAIN = (
    {*FUNCTIONS, *FUNCTION_ALIASES, "equal_null", "date_part", "greatest", "least", "nvl2", "nullif"}
    - _PARSED
) | {"dateadd", "datediff"}


class PlainCalls(Spark):
    """Spark's SQL, where a call of a function that is known here stays a name with arguments.

    sqlglot rewrites many calls into nodes that hold what other dialects need, such as a pattern in another
    notation; the way back loses the difference between what was written and what was made of it.
    """

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]
        """Spark's parser, with fewer functions that it rewrites."""

        FUNCTIONS = {  # noqa: RUF012 - an attribute that the base class defines
            name: build for name, build in Spark.Parser.FUNCTIONS.items() if name.lower() not in _PLAIN
        }
