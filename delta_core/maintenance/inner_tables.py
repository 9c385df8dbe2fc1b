"""Other Delta tables below a table's root: their files are theirs, whatever this table's log says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.storage.log_store import LogStore


def inner_root(path: str) -> str | None:
    """The folder whose log a listed file is in; None for a file of no log, and of the table's own.

    Args:
        path: store path of the file.
    """
    root, separator, _ = path.partition(f"/{LOG_DIRECTORY}/")
    return root if separator else None


def is_within(path: str, roots: Set[str]) -> bool:
    """Whether a file lies below one of some folders."""
    return any(folder in roots for folder in folders_above(path))


def folders_above(path: str) -> Iterator[str]:
    """The folders on the way to a file, the innermost first, without the table's root."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def inner_tables(store: LogStore, paths: Iterable[str]) -> frozenset[str]:
    """Which of the folders on the way to some files are other tables now. One request for each folder."""
    folders = {folder for path in paths for folder in folders_above(path)}
    return frozenset(
        folder for folder in folders if next(iter(store.walk(f"{folder}/{LOG_DIRECTORY}")), None) is not None
    )
