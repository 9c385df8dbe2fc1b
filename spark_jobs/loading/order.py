"""Sort items of Spark SQL, such as `seq DESC NULLS LAST`, which Spark's `expr` does not parse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delta_core.errors import InvalidJobSpecError

if TYPE_CHECKING:
    from pyspark.sql import Column

_NULLS: Final = re.compile(r"(?<=[\s)\]`'\"])NULLS\s+(FIRST|LAST)\Z", re.IGNORECASE)
_DIRECTION: Final = re.compile(r"(?<=[\s)\]`'\"])(ASC|DESC)\Z", re.IGNORECASE)
_OPENING: Final = "(["
_CLOSING: Final = ")]"
_QUOTES: Final = "'\"`"


@dataclass(frozen=True, slots=True, kw_only=True)
class SortItem:
    """One item of an ORDER BY.

    Attributes:
        expression: a Spark SQL expression.
        descending: whether larger values come first.
        nulls_first: whether nulls come before all values.
    """

    expression: str
    descending: bool = False
    nulls_first: bool = False

    def column(self) -> Column:
        """The item as a Spark sort expression."""
        from pyspark.sql import functions as fn

        value = fn.expr(self.expression)
        if self.descending:
            return value.desc_nulls_first() if self.nulls_first else value.desc_nulls_last()
        return value.asc_nulls_first() if self.nulls_first else value.asc_nulls_last()


def sort_items(strings: Iterable[str]) -> list[SortItem]:
    """Parse sort items from SQL strings, each with one item or several items separated by commas.

    By default nulls come last, both ascending and descending.

    Raises:
        InvalidJobSpecError: an item has no expression.
    """
    return [_item(part, sql) for sql in strings for part in _parts(sql)]


def _item(part: str, sql: str) -> SortItem:
    rest = part.strip()
    nulls = _NULLS.search(rest)
    if nulls is not None:
        rest = rest[: nulls.start()].rstrip()
    direction = _DIRECTION.search(rest)
    if direction is not None:
        rest = rest[: direction.start()].rstrip()
    if not rest:
        raise InvalidJobSpecError(
            f"The order item {sql!r} has no expression.",
            cause="An item is an expression, then optionally ASC or DESC, then NULLS FIRST or NULLS LAST.",
            fix="Write, for example, seq DESC NULLS LAST.",
        )
    return SortItem(
        expression=rest,
        descending=direction is not None and direction[1].upper() == "DESC",
        nulls_first=nulls is not None and nulls[1].upper() == "FIRST",
    )


def _parts(sql: str) -> Iterator[str]:
    """The parts of the SQL text between commas outside of brackets and quotes."""
    start = depth = 0
    quote = ""
    escaped = False
    for position, letter in enumerate(sql):
        if escaped:
            escaped = False
        elif quote:
            escaped = letter == "\\" and quote != "`"
            quote = "" if letter == quote else quote
        elif letter in _QUOTES:
            quote = letter
        elif letter in _OPENING or letter in _CLOSING:
            depth += 1 if letter in _OPENING else -1
        elif letter == "," and depth == 0:
            yield sql[start:position]
            start = position + 1
    yield sql[start:]
