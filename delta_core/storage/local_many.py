"""Listing and deleting many local files: no Python object and no path from the root for each of them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from delta_core.errors import ObjectNotFoundError, PathEscapeError
from delta_core.storage.listed_files import BATCH_ROWS, ListedFiles, ListedRows
from delta_core.storage.local_errors import translated
from delta_core.storage.local_walk import open_directory
from delta_core.storage.log_store import LogStore
from delta_core.storage.request_meter import METER
from delta_core.storage.store_path import plain_parts
from delta_core.storage.unchanged import Deleted, SeenObject, delete_one_by_one

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# A folder that was listed has become a link, or is gone: there is nothing of the table's in it any more.
_NO_FOLDER = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def walk_directory(root: Path, path: str, *, temporary_prefix: str) -> Iterator[ListedFiles]:
    """Every regular file below a directory. Symbolic links are neither followed nor listed.

    Args:
        root: of the table.
        path: the directory's, below it; the way to it may have links.
        temporary_prefix: names that begin so are not listed.

    Raises:
        StorageError: a directory could not be listed.
    """
    rows = ListedRows()
    pending = [path]
    follow = 0
    while pending:
        current = pending.pop()
        prefix = f"{current}/" if current else ""
        try:
            directory = os.open(root / current, _LIST | follow)
        except OSError as error:
            if error.errno in _NO_FOLDER:
                continue
            raise translated(error, current, "list") from error
        finally:
            follow = os.O_NOFOLLOW
        rows.enter(current)
        METER.count()
        try:
            # By its descriptor: a name alone is looked up faster than a path.
            yield from _read(directory, rows, prefix, pending, temporary_prefix)
        except OSError as error:
            raise translated(error, current, "list") from error
        finally:
            os.close(directory)
    if rows.names:
        yield rows.take()


def _read(
    directory: int, rows: ListedRows, prefix: str, pending: list[str], temporary_prefix: str
) -> Iterator[ListedFiles]:
    names, sizes, times = rows.names, rows.size_bytes, rows.modified_ms
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if entry.is_file(follow_symlinks=False):
                if name.startswith(temporary_prefix):
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # deleted since the directory was read
                    continue
                names.append(name)
                sizes.append(found.st_size)
                times.append(found.st_mtime_ns // 1_000_000)
                if len(names) >= BATCH_ROWS:
                    yield rows.take()
            elif entry.is_dir(follow_symlinks=False):
                pending.append(prefix + name)


def delete_files(store: LogStore, root: Path, objects: Sequence[SeenObject]) -> Deleted:
    """See `delete_unchanged`. Two system calls for each file, in a directory that is opened once.

    No link on the way is followed. What is no regular file any more, such as a link, is changed.

    Args:
        store: that of the directory, for files in folders that cannot be opened so.
        root: its root.
        objects: best with those of one folder one after the other.
    """
    done = Deleted()
    for folder, group in groupby(objects, key=lambda item: item[0].rpartition("/")[0]):
        found = list(group)
        first = found[0][0]
        parents = plain_parts(first, root_uri=store.uri)[:-1]
        try:
            directory = open_directory(root, parents, path=first)
        except (OSError, PathEscapeError):
            # What is wrong with it is said of the file that is met first.
            done += delete_one_by_one(store, found)
            continue
        try:
            done += _delete_in(directory, len(folder) + 1 if folder else 0, found, store.uri)
        finally:
            os.close(directory)
    return done


def _delete_in(directory: int, name_at: int, objects: Iterable[SeenObject], root_uri: str) -> Deleted:
    files = size_total = 0
    changed = []
    for path, size_bytes, modified_ms in objects:
        name = path[name_at:]
        plain_parts(name, root_uri=root_uri)
        verb = "inspect"
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if (
                found.st_size != size_bytes
                or found.st_mtime_ns // 1_000_000 != modified_ms
                or not stat.S_ISREG(found.st_mode)
            ):
                changed.append(path)
                continue
            verb = "delete"
            os.unlink(name, dir_fd=directory)
        except FileNotFoundError:
            continue
        except OSError as error:
            failure = translated(error, path, verb)
            if isinstance(failure, ObjectNotFoundError):
                continue
            raise failure from error
        files += 1
        size_total += size_bytes
    METER.count(files)
    return Deleted(files=files, size_bytes=size_total, changed=tuple(changed))
