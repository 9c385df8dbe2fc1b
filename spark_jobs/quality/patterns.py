"""The one dialect of patterns: regular expressions of RE2, and LIKE of SQL.

RE2 is what Arrow evaluates, in the driver and on Spark's workers alike. It takes time linear in a text's
length, so no pattern of a suite can hold a load up. What it does not have, such as looking ahead or
referring back, is refused when the suite is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.arithmetic import cast_value
from delta_core.schema.types import BOOLEAN, DATE, STRING, DataType
from spark_jobs.quality.suite_values import MisfitError, is_exact

_ANY: Final = {"%": ".*", "_": "."}


def checked_regex(pattern: object) -> str:
    """A regular expression that RE2 has.

    Raises:
        MisfitError: it has not.
    """
    if not isinstance(pattern, str):
        raise MisfitError(f"{pattern!r} is no regular expression")
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).split("\n")[0][:200]
        raise MisfitError(
            f"the pattern {pattern[:200]!r} is no regular expression of RE2, the dialect of suites: {reason}"
        ) from error
    return pattern


def like_as_regex(pattern: object, escape: object) -> str:
    """A LIKE pattern as a regular expression over the whole text.

    Args:
        pattern: % is any text, _ any character.
        escape: the character that takes their meaning away; a backslash when None.

    Raises:
        MisfitError: the escape is no single character, or stands before another than these.
    """
    if not isinstance(pattern, str):
        raise MisfitError(f"{pattern!r} is no LIKE pattern")
    mark = "\\" if escape is None else escape
    if not isinstance(mark, str) or len(mark) != 1:
        raise MisfitError(f"escape {escape!r} is not a single character")
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == mark:
            following = next(characters, "")
            if following not in ("%", "_", mark):
                raise MisfitError(f"in the pattern {pattern!r} an escape stands before {following!r}")
            parts.append(re.escape(following))
        else:
            parts.append(_ANY.get(character) or re.escape(character))
    return checked_regex(rf"(?s)\A{''.join(parts)}\z")


def has_string(data_type: DataType) -> bool:
    """Whether values of the type have one text whatever the engine, so that patterns apply to them."""
    return data_type in (STRING, BOOLEAN, DATE) or is_exact(data_type)


def string_of(values: pa.Array) -> pa.Array:
    """The texts of such values: numbers with all their digits, dates as 2024-05-01, true and false."""
    return values if pa.types.is_string(values.type) else cast_value(values, pa.string())


def matches(values: pa.Array, patterns: Sequence[str], *, all_of_them: bool) -> pa.Array:
    """Where a text has a match of any (or of each) pattern; null where it is null."""
    found = pc.match_substring_regex(values, patterns[0])
    for pattern in patterns[1:]:
        one = pc.match_substring_regex(values, pattern)
        found = pc.and_(found, one) if all_of_them else pc.or_(found, one)
    return found
