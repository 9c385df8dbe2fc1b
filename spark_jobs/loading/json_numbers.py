"""JSON's numbers as the text that they are: Spark makes a double of one with a fraction before it is text."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Column

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"' + r"|'[^'\\]*+(?:\\.[^'\\]*+)*+'"
_WORD: Final = r"[\w.+-]"
_NUMBER: Final = rf"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?!{_WORD})"
# What stands before a number, each match where the one before it ended, so that none begins inside a string.
# All that repeats is possessive: Java goes through that in a loop, and through all else in a recursion.
_BEFORE: Final = rf"""(?:[^"'0-9-]++|{_STRING}|(?!{_NUMBER})-?[0-9]{_WORD}*+|-(?![0-9]))*+"""
_TOKENS: Final = rf"(?s)\G({_BEFORE})({_NUMBER})"
_HAS_FRACTION: Final = "[0-9][.eE]"


class MarkedNumbers:
    """Numbers of JSON text as strings with a mark that no data can hold, and as numbers' text again."""

    def __init__(self) -> None:
        self._mark = f"deltaward_{secrets.token_hex(8)}_"

    def marked(self, line: Column) -> Column:
        """The JSON text with each number as a string; as it is where no number has a fraction."""
        from pyspark.sql import functions as fn

        quoted = fn.regexp_replace(line, _TOKENS, f'$1"{self._mark}$2"')
        return fn.when(line.rlike(_HAS_FRACTION), quoted).otherwise(line)

    def unmarked(self, column: Column, shape: Any) -> Column:
        """What `from_json` made of marked text, at each depth with the numbers as they stood there.

        Args:
            column: a string, a struct or an array of such.
            shape: its Spark type.
        """
        from pyspark.sql import functions as fn
        from pyspark.sql.types import ArrayType, StringType, StructType

        if isinstance(shape, StringType):
            number = fn.substring(column, len(self._mark) + 1, 1 << 30)
            inside = fn.regexp_replace(column, f'"{self._mark}([^"]*+)"', "$1")
            return (
                fn.when(column.startswith(self._mark), number)
                .when(column.contains(self._mark), inside)
                .otherwise(column)
            )
        if isinstance(shape, ArrayType):
            return fn.transform(column, lambda item: self.unmarked(item, shape.elementType))
        if isinstance(shape, StructType):
            fields = [
                self.unmarked(column.getField(field.name), field.dataType).alias(field.name)
                for field in shape.fields
            ]
            return fn.when(column.isNotNull(), fn.struct(*fields)) if fields else column
        return column
