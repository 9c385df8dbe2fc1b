"""The canonical form of JSON objects and its digest (PROTOCOL.md, "JSON checksum")."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import orjson

CHECKSUM_KEY = "checksum"


def json_checksum(fields: Mapping[str, Any]) -> str:
    """The digest of an object. Its top-level field `checksum` is ignored."""
    return hashlib.md5(canonical_json(fields).encode(), usedforsecurity=False).hexdigest()


def canonical_json(fields: Mapping[str, Any]) -> str:
    """The object's leaves as `path=value`, in the order of the paths' bytes."""
    rest = {name: value for name, value in fields.items() if name != CHECKSUM_KEY}
    leaves = sorted(_leaves(rest, ()), key=lambda leaf: leaf[0].encode())
    return ",".join(f"{path}={value}" for path, value in leaves)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, (*path, _string(name)))
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _leaves(item, (*path, str(position)))
    else:
        yield "+".join(path), _string(value) if isinstance(value, str) else orjson.dumps(value).decode()


def _string(value: str) -> str:
    return f'"{quote(value, safe="-._~")}"'
