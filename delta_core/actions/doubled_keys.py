"""Keys that an object of a JSON text has twice.

JSON leaves open what that means: some readers take the first value, some the last, some refuse. The parser
takes the last and says nothing, so the text is compared with what was made of it. Most commits have no blank
in them, and what was parsed then gives the same bytes again; if not, two counts nearly always say that all is
well; only else the text is parsed again, slowly.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

# A string before a colon is a key: within strings a quotation mark has a backslash before it.
_KEY_END = re.compile(rb'(?<!\\)"[ \t\r\n]*:')


class _Doubled(Exception):  # noqa: N818 - a signal inside this module
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def doubled_key(text: bytes, parsed: dict[str, Any]) -> str | None:
    """A key that one object of a valid JSON text has twice; None when there is none.

    Args:
        text: the JSON.
        parsed: what it was parsed to.

    Raises:
        RecursionError: there seems to be one, and the text nests too deeply to find it.
    """
    if _is_written_so(text, parsed):
        return None
    # Keys that end with a backslash are the one thing that the pattern does not count right.
    if b'\\\\"' not in text and len(_KEY_END.findall(text)) == _count(parsed):
        return None
    try:
        json.loads(text, object_pairs_hook=_distinct)
    except _Doubled as found:
        return found.key
    except ValueError:
        # The fast parser has accepted it, so this one only differs in what it puts up with.
        return None
    return None


def _is_written_so(text: bytes, parsed: dict[str, Any]) -> bool:
    try:
        return orjson.dumps(parsed) == text
    except orjson.JSONEncodeError:
        # It reads deeper than it writes.
        return False


def _count(parsed: dict[str, Any]) -> int:
    """How many keys there are, at all depths."""
    count = 0
    left: list[Any] = [parsed]
    while left:
        value = left.pop()
        if type(value) is dict:
            count += len(value)
            left.extend(item for item in value.values() if type(item) is dict or type(item) is list)
        else:
            left.extend(item for item in value if type(item) is dict or type(item) is list)
    return count


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Doubled(key)
        seen.add(key)
