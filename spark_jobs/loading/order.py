"""Sort items of Spark SQL, such as `seq DESC NULLS LAST`, which Spark's `expr` alone does not know."""

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
        expression: Spark SQL.
        descending: whether larger values come first.
        nulls_first: whether nulls come before all values.
    """

    expression: str
    descending: bool = False
    nulls_first: bool = False

    def column(self) -> Column:
        """The item as Spark takes it."""
        from pyspark.sql import functions as fn

        value = fn.expr(self.expression)
        if self.descending:
            return value.desc_nulls_first() if self.nulls_first else value.desc_nulls_last()
        return value.asc_nulls_first() if self.nulls_first else value.asc_nulls_last()


def sort_items(strings: Iterable[str]) -> list[SortItem]:
    """The items of some texts, each of one item or several with commas between them.

    Nulls come last where an item does not say where, so that a value always goes before none.

    Raises:
        InvalidJobSpecError: an item has no expression.
    """
    return [_item(part, text) for text in strings for part in _parts(text)]


def _item(part: str, text: str) -> SortItem:
    rest = part.strip()
    nulls = _NULLS.search(rest)
    if nulls is not None:
        rest = rest[: nulls.start()].rstrip()
    direction = _DIRECTION.search(rest)
    if direction is not None:
        rest = rest[: direction.start()].rstrip()
    if not rest:
        raise InvalidJobSpecError(
            f"There is nothing to order by in {text!r}.",
            cause="An item is an expression, then ASC or DESC, then NULLS FIRST or NULLS LAST.",
            fix="Write, for example, seq DESC NULLS LAST.",
        )
    return SortItem(
        expression=rest,
        descending=direction is not None and direction[1].upper() == "DESC",
        nulls_first=nulls is not None and nulls[1].upper() == "FIRST",
    )


def _parts(text: str) -> Iterator[str]:
    """The text between commas that are in no brackets and no quotes."""
    start = depth = 0
    quote = ""
    escaped = False
    for position, letter in enumerate(text):
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
            yield text[start:position]
            start = position + 1
    yield text[start:]
