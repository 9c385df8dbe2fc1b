"""JSON numbers as exact strings. Spark would convert a number with a fraction to a double first."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Column

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"' + r"|'[^'\\]*+(?:\\.[^'\\]*+)*+'"
_WORD: Final = r"[\w.+-]"
_NUMBER: Final = rf"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?!{_WORD})"
# The characters before a number. Each match starts where the previous match ended, so that none starts inside
# a string. All quantifiers are possessive: Java matches these in a loop, and others by recursion.
_BEFORE: Final = rf"""(?:[^"'0-9-]++|{_STRING}|(?!{_NUMBER})-?[0-9]{_WORD}*+|-(?![0-9]))*+"""
_TOKENS: Final = rf"(?s)\G({_BEFORE})({_NUMBER})"
_HAS_FRACTION: Final = "[0-9][.eE]"


class MarkedNumbers:
    """Replaces numbers in JSON text by strings with a random mark, and removes the mark after parsing."""

    def __init__(self) -> None:
        self._mark = f"deltaward_{secrets.token_hex(8)}_"

    def marked(self, line: Column) -> Column:
        """The JSON text with each number as a marked string; unchanged when no number has a fraction."""
        from pyspark.sql import functions as fn

        quoted = fn.regexp_replace(line, _TOKENS, f'$1"{self._mark}$2"')
        return fn.when(line.rlike(_HAS_FRACTION), quoted).otherwise(line)

    def unmarked(self, column: Column, shape: Any) -> Column:
        """The result of `from_json` for marked text, with the original numbers at each depth.

        Args:
            column: a string, or a struct or array of strings.
            shape: the Spark type of the column.
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
