"""Decides whether a path in the log may refer to a file in the store.

Writers spell paths differently. A file may be deleted only if it is certain that no path refers to it.
Therefore every spelling that could mean a file counts: an ambiguous path protects the file.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable, Iterator, Set
from urllib.parse import unquote

from delta_core.errors import PathEscapeError
from delta_core.storage.uri import resolve_data_path


def protected_keys(raw_log_paths: Iterable[str], *, root_uri: str) -> set[str]:
    """Keys of all store paths that the paths in the log may mean, for `is_protected`.

    A path that seems to be outside the root may be another spelling of a path below the root, with another
    host name or protocol for the same store. Such a path protects all files below the root with its file
    name.
    """
    keys: set[str] = set()
    for raw in raw_log_paths:
        keys.update(_keys(raw, root_uri))
    return keys


def is_protected(store_path: str, keys: Set[str]) -> bool:
    """True when a listed file may be one of the files of the keys."""
    return listed_key(store_path) in keys or _name_key(store_path) in keys


def listed_key(store_path: str) -> str:
    """The key of a listed store path."""
    return store_path if store_path.isascii() else unicodedata.normalize("NFC", store_path)


def spelled_key(spelling: str) -> str | None:
    """The key of one possible spelling of a path; None when the spelling leads out of the root."""
    normal = posixpath.normpath(spelling.replace("\\", "/")).lstrip("/")
    return None if normal in (".", "..") or normal.startswith("../") else listed_key(normal)


def _name_key(path: str) -> str:
    # NUL distinguishes these keys from keys of paths, which cannot contain NUL.
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
        # For writers that do not encode paths, the raw path; for writers that encode twice, decoded twice.
        for spelling in (raw, unquote(resolved)):
            key = spelled_key(spelling)
            if key is not None:
                yield key
