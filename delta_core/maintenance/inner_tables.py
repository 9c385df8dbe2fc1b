"""Other Delta tables below a table's root. Their files do not belong to this table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.log.outer_tables import has_log
from delta_core.storage.log_store import LogStore


def inner_root(path: str) -> str | None:
    """The directory of the inner table whose log contains a file; None for a file outside inner tables' logs.

    Args:
        path: store path of the file, or of a directory with a slash at the end, which may be the log itself.
    """
    root, separator, _ = path.partition(f"/{LOG_DIRECTORY}/")
    return root if separator else None


def is_within(path: str, roots: Set[str]) -> bool:
    """Whether a file lies below one of the directories."""
    return any(folder in roots for folder in folders_above(path))


def folders_above(path: str) -> Iterator[str]:
    """The directories above a file, innermost first, without the table's root."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def inner_tables(store: LogStore, paths: Iterable[str]) -> frozenset[str]:
    """The directories above the files that are Delta tables. One request for each directory."""
    folders = {folder for path in paths for folder in folders_above(path)}
    return frozenset(folder for folder in folders if has_log(store, folder))
