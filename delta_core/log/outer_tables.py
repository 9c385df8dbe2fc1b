"""Other Delta tables above a table's directory. They may have files in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote, urlsplit

from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY
from delta_core.errors import NestedTableError, StorePermissionError
from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.storage.log_store import LogStore, parent_store
from delta_core.storage.parallel import parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterTable:
    """A table above another table's directory.

    Attributes:
        store: the store rooted at the outer table.
        path: path of the inner table's directory, relative to the outer table.
    """

    store: LogStore
    path: str

    @property
    def writes_here(self) -> bool:
        """Whether the inner directory is in a directory of partitions or change data of the outer table."""
        return _is_written(self.path.partition("/")[0])


def outer_tables(store: LogStore) -> tuple[OuterTable, ...]:
    """The tables above a table's directory, innermost first.

    Tables in directories whose names begin with `_` or `.` are separate from the tables above these
    directories, such as `_deltaward/quarantine`. Partition directories (`_day=1`) and `_change_data` are not
    such directories.

    Requests: one listing for each directory above, in parallel. A directory that may not be listed counts as
    no table.

    Raises:
        StorageError: a directory could not be listed.
    """
    return _tables(store, list(_directories_above(store)))


def require_separate_directory(store: LogStore) -> None:
    """Refuse a new table in a directory of partitions or change data of another table, or in a log.

    A vacuum of the outer table would keep all files in the directory. Requests: one listing for each
    directory of the form `name=value` on the path, in parallel; usually none.

    Raises:
        NestedTableError: the directory belongs to another table.
        StorageError: a directory above could not be listed.
    """
    if is_in_log(store.uri):
        raise NestedTableError(
            f"No table can be created at {store.uri}.",
            cause=f"The path contains the directory {LOG_DIRECTORY}, which is the log of another table.",
            fix="Choose a directory outside of that table.",
        )
    if not any(_is_written(name) for name in _names(store.uri)):
        return
    directories = [directory for directory in _directories_above(store) if directory.writes_here]
    for outer in _tables(store, directories):
        raise NestedTableError(
            f"No table can be created at {store.uri}.",
            cause=f"The directory {outer.path!r} belongs to the table {outer.store.uri}, which may have data "
            "files in it.",
            fix="Choose a directory outside of that table, or write to that table.",
        )


def is_in_log(root_uri: str) -> bool:
    """Whether a table's directory is in the log of another table, by its canonical URI."""
    return LOG_DIRECTORY in _names(root_uri)


def has_log(store: LogStore, directory: str = "") -> bool:
    """Whether a directory contains a log with files. One listing.

    Args:
        store: the store.
        directory: the directory, relative to the store's root. Its log may be a symbolic link.
    """
    log = f"{directory}/{LOG_DIRECTORY}" if directory else LOG_DIRECTORY
    if next(iter(store.walk(log)), None) is not None:
        return True
    # Unlike a walk, a listing of a local directory contains symbolic links to files.
    return not store.remote and bool(store.list_directory(log))


def _directories_above(store: LogStore) -> Iterator[OuterTable]:
    above, path = parent_store(store), ""
    for name in reversed(_names(store.uri)):
        is_separate = name.startswith(("_", ".")) and not _is_written(name)
        if above is None or is_separate:
            return
        path = f"{name}/{path}" if path else name
        yield OuterTable(store=above, path=path)
        above = parent_store(above)


def _tables(store: LogStore, directories: list[OuterTable]) -> tuple[OuterTable, ...]:
    found = parallel(store, [partial(_is_table, directory.store) for directory in directories])
    return tuple(directory for directory, is_table in zip(directories, found, strict=True) if is_table)


def _is_table(store: LogStore) -> bool:
    try:
        return has_log(store)
    except StorePermissionError:
        # Credentials may be limited to the table's own directory.
        return False


def _is_written(name: str) -> bool:
    """Whether a table writes data files or change data to directories with such a name."""
    return "=" in name or name == CHANGE_DATA_DIRECTORY


def _names(root_uri: str) -> list[str]:
    """The names of the directories from the root of the file system or bucket to the table."""
    return [name for name in unquote(urlsplit(root_uri).path).split("/") if name]
