"""The URIs among a job's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def uris_of(params: Mapping[str, Any], *, at: str = "") -> Iterator[tuple[str, str]]:
    """Every URI, after the path of its parameter, such as `source.uris` or `quality.quarantine_uri`.

    At any depth and for every job kind, a parameter holds a URI when its name is `uri` or `uris`, or ends in
    `_uri` or `_uris`. `at` is the path of `params` itself, which the result's paths begin with.
    """
    for name, value in params.items():
        place = f"{at}.{name}" if at else str(name)
        if isinstance(value, Mapping):
            yield from uris_of(value, at=place)
        elif isinstance(value, str) and _names_uris(name):
            yield place, value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, Mapping):
                    yield from uris_of(item, at=place)
                elif isinstance(item, str) and _names_uris(name):
                    yield place, item


def _names_uris(name: str) -> bool:
    return name.rpartition("_")[2] in ("uri", "uris")
