"""When a file in the store may be the one that a path in the log means.

Writers differ in how they spell paths. For deleting, a match must be certain to be absent, so every
spelling that could mean the file counts: ambiguity keeps the file.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable, Iterator, Set
from urllib.parse import unquote

from delta_core.errors import PathEscapeError
from delta_core.storage.uri import resolve_data_path


def protected_keys(raw_log_paths: Iterable[str], *, root_uri: str) -> set[str]:
    """Keys of every store path that one of the log paths may mean, for `is_protected`.

    A path that seems to lead out of the root may be another's spelling of one below it: another name of the
    host, another protocol of the same store. So every file of that name below the root is meant.
    """
    keys: set[str] = set()
    for raw in raw_log_paths:
        keys.update(_keys(raw, root_uri))
    return keys


def is_protected(store_path: str, keys: Set[str]) -> bool:
    """Whether a listed file may be one that the keys are of."""
    return listed_key(store_path) in keys or _name_key(store_path) in keys


def listed_key(store_path: str) -> str:
    """The key of a path as the store lists it."""
    return store_path if store_path.isascii() else unicodedata.normalize("NFC", store_path)


def spelled_key(spelling: str) -> str | None:
    """The key of a path as somebody may have spelled it; None when it leads out of the root."""
    normal = posixpath.normpath(spelling.replace("\\", "/")).lstrip("/")
    return None if normal in (".", "..") or normal.startswith("../") else listed_key(normal)


def _name_key(path: str) -> str:
    # No path has a NUL.
    return "\0" + listed_key(path.rpartition("/")[2])


def _keys(raw: str, root_uri: str) -> Iterator[str]:
    try:
        resolved = resolve_data_path(raw, root_uri=root_uri)
    except PathEscapeError:
        for spelling in (raw, unquote(raw, errors="surrogateescape")):
            yield _name_key(spelling.replace("\\", "/"))
        return
    yield listed_key(resolved)
    if "%" in raw or "//" in raw or "\\" in raw:
        # A writer that forgot to encode stored the raw spelling; one that encoded twice, the other.
        for spelling in (raw, unquote(resolved)):
            key = spelled_key(spelling)
            if key is not None:
                yield key
