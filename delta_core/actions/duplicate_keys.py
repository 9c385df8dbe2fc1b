"""Detection of keys that occur twice in one JSON object.

JSON does not define their meaning: some readers take the first value, some take the last, some fail. The
parser takes the last value silently, so the JSON text is compared with the parsed value, in three steps.
Most commits contain no white space: then encoding the parsed value gives the same bytes. Otherwise the number
of keys in the JSON text is compared with the number of parsed keys. Only if they differ, a slow parser reads
the JSON text again.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

# A string before a colon is a key. Within a string, a quotation mark has a backslash before it.
_KEY_END = re.compile(rb'(?<!\\)"[ \t\r\n]*:')


class _Duplicate(Exception):  # noqa: N818 - a signal inside this module
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def duplicate_key(text: bytes, parsed: dict[str, Any]) -> str | None:
    """A key that occurs twice in one object of valid JSON; None when all keys are distinct.

    Args:
        text: the JSON text.
        parsed: the value that the JSON text was parsed to.

    Raises:
        RecursionError: a duplicate key is likely, and the JSON nests too deeply to find it.
    """
    if _encodes_to(text, parsed):
        return None
    # The pattern counts everything correctly except keys that end with a backslash.
    if b'\\\\"' not in text and len(_KEY_END.findall(text)) == _count(parsed):
        return None
    try:
        json.loads(text, object_pairs_hook=_distinct)
    except _Duplicate as duplicate:
        return duplicate.key
    except ValueError:
        # The fast parser has accepted the JSON text, so this parser is only stricter.
        return None
    return None


def _encodes_to(text: bytes, parsed: dict[str, Any]) -> bool:
    try:
        return orjson.dumps(parsed) == text
    except orjson.JSONEncodeError:
        # orjson parses deeper nesting than it encodes.
        return False


def _count(parsed: dict[str, Any]) -> int:
    """The number of keys at all depths."""
    count = 0
    pending: list[Any] = [parsed]
    while pending:
        value = pending.pop()
        if type(value) is dict:
            count += len(value)
            pending.extend(item for item in value.values() if type(item) is dict or type(item) is list)
        else:
            pending.extend(item for item in value if type(item) is dict or type(item) is list)
    return count


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Duplicate(key)
        seen.add(key)
