"""Finding the tables below a prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.storage.directories import list_directories
from delta_core.storage.open import open_store, options_for
from delta_core.storage.parallel import parallel
from delta_core.storage.uri import quoted_path

DEFAULT_DEPTH: Final = 4
"""How many directories below a prefix a table may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The tables below a prefix.

    Attributes:
        uris: the canonical URIs of the tables, sorted.
        too_deep: directories at the greatest depth that are not tables and have directories of their own, so
            that tables below them may have been missed. Paths below the prefix.
        listings: number of directories that were listed.
    """

    uris: tuple[str, ...]
    too_deep: tuple[str, ...]
    listings: int


def discover(
    prefix: str,
    *,
    depth: int = DEFAULT_DEPTH,
    exclude: Sequence[str] = (),
    storage_options: Mapping[str, str] | None = None,
) -> Discovery:
    """Find the tables below a prefix. Lists each directory once and stops at the root of a table.

    Directories that begin with `_` or `.` and partition directories (`day=1`) are not tables and are skipped.

    Args:
        prefix: a path or URI. It may be a table itself.
        depth: how many directories below the prefix a table may be; 0 for the prefix alone.
        exclude: shell patterns of paths below the prefix, such as `tmp/*`, that are skipped.
        storage_options: options of the store.

    Raises:
        InvalidUriError: no store serves the prefix.
        StorageError: the store fails.
    """
    store = open_store(prefix, storage_options=options_for(prefix, storage_options))
    root = store.uri.rstrip("/")
    found: list[str] = []
    too_deep: list[str] = []
    listings = 0
    level = [""]
    for below in range(depth + 1):
        listed = parallel(store, [partial(list_directories, store, path) for path in level])
        listings += len(level)
        following: list[str] = []
        for path, names in zip(level, listed, strict=True):
            if LOG_DIRECTORY in names:
                found.append(f"{root}/{quoted_path(path)}" if path else root)
                continue
            children = [f"{path}/{name}" if path else name for name in names if _may_contain_tables(name)]
            children = [child for child in children if not _matches(child, exclude)]
            if below < depth:
                following += children
            elif children:
                too_deep.append(path)
        level = following
        if not level:
            break
    return Discovery(uris=tuple(sorted(found)), too_deep=tuple(too_deep), listings=listings)


def _may_contain_tables(name: str) -> bool:
    return not name.startswith(("_", ".")) and "=" not in name


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
