"""The pattern dialect of suites: RE2 regular expressions, and SQL's LIKE.

Arrow evaluates RE2, both in the driver and on Spark's workers. The time is linear in the length of a string,
so no pattern of a suite can block a load. Unsupported syntax, such as lookahead and backreferences, is
refused when the suite is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.arithmetic import cast_value
from delta_core.schema.types import BOOLEAN, DATE, STRING, DataType
from spark_jobs.quality.suite_values import InapplicableError, is_exact

_WILDCARDS: Final = {"%": ".*", "_": "."}


def checked_regex(pattern: object) -> str:
    """Check that RE2 supports a regular expression, and return it.

    Raises:
        InapplicableError: RE2 does not support it.
    """
    if not isinstance(pattern, str):
        raise InapplicableError(f"A regular expression must be a string, not {pattern!r}.")
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).split("\n")[0][:200]
        raise InapplicableError(
            f"The pattern {pattern[:200]!r} is not a valid RE2 regular expression: {reason}."
        ) from error
    return pattern


def like_as_regex(pattern: object, escape: object) -> str:
    """A LIKE pattern as a regular expression for the whole string.

    Args:
        pattern: % matches any characters, _ matches one character.
        escape: the escape character; a backslash when None.

    Raises:
        InapplicableError: the escape is not a single character, or precedes a character other than %, _ or
            the escape.
    """
    if not isinstance(pattern, str):
        raise InapplicableError(f"A LIKE pattern must be a string, not {pattern!r}.")
    escape_character = "\\" if escape is None else escape
    if not isinstance(escape_character, str) or len(escape_character) != 1:
        raise InapplicableError(f"The argument `escape` must be a single character, not {escape!r}.")
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape_character:
            following = next(characters, "")
            if following not in ("%", "_", escape_character):
                raise InapplicableError(
                    f"The pattern {pattern!r} escapes {following!r}, but only %, _ and {escape_character} "
                    "can be escaped."
                )
            parts.append(re.escape(following))
        else:
            parts.append(_WILDCARDS.get(character) or re.escape(character))
    return checked_regex(rf"(?s)\A{''.join(parts)}\z")


def has_string(data_type: DataType) -> bool:
    """Whether values of the type have the same string in every engine, so that patterns apply to them."""
    return data_type in (STRING, BOOLEAN, DATE) or is_exact(data_type)


def string_of(values: pa.Array) -> pa.Array:
    """The values as strings: numbers with all digits, dates such as 2024-05-01, true and false."""
    return values if pa.types.is_string(values.type) else cast_value(values, pa.string())


def matches(values: pa.Array, patterns: Sequence[str], *, all_of_them: bool) -> pa.Array:
    """Whether each string matches any (or each) of the patterns; null for a null string."""
    matched = pc.match_substring_regex(values, patterns[0])
    for pattern in patterns[1:]:
        match_one = pc.match_substring_regex(values, pattern)
        matched = pc.and_(matched, match_one) if all_of_them else pc.or_(matched, match_one)
    return matched
