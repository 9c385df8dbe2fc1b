"""Listing and deleting many local files, without a Python object and a full path for each file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from delta_core.errors import ObjectNotFoundError, PathEscapeError
from delta_core.storage.listed_files import BATCH_ROWS, ListedFiles, ListedRows
from delta_core.storage.local_system import open_directory, translated
from delta_core.storage.log_store import LogStore, plain_parts
from delta_core.storage.request_meter import METER
from delta_core.storage.unchanged import Deleted, SeenObject, delete_one_by_one

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# The listed folder was replaced by a link or deleted: it has no files of the table any more.
_NO_FOLDER = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def walk_directory(root: Path, path: str, *, temporary_prefix: str) -> Iterator[ListedFiles]:
    """Every regular file below a directory. Symbolic links are not followed; their paths are in `links`.

    Args:
        root: the root of the table.
        path: the directory, relative to the root; its path may contain symbolic links.
        temporary_prefix: names that start with this prefix are not listed.

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
            # By file descriptor: looking up a name is faster than looking up a path.
            yield from _read(directory, rows, prefix, pending, temporary_prefix)
        except OSError as error:
            raise translated(error, current, "list") from error
        finally:
            os.close(directory)
    if rows.names or rows.links:
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
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # deleted since the directory was read
                    continue
                names.append(name)
                sizes.append(status.st_size)
                times.append(status.st_mtime_ns // 1_000_000)
                if len(names) >= BATCH_ROWS:
                    yield rows.take()
            elif entry.is_dir(follow_symlinks=False):
                pending.append(prefix + name)
            elif entry.is_symlink():
                rows.links.append(prefix + name)
                if len(rows.links) >= BATCH_ROWS:
                    yield rows.take()


def delete_files(store: LogStore, root: Path, objects: Sequence[SeenObject]) -> Deleted:
    """`delete_unchanged` for local files: two system calls each, in a directory that is opened once.

    Follows no symbolic link on the path. A file that is not a regular file any more counts as changed.

    Args:
        store: the store of the root, for files in folders that cannot be opened without following links.
        root: the root of the store.
        objects: fastest when the objects of one folder are adjacent.
    """
    done = Deleted()
    for folder, group in groupby(objects, key=lambda item: item[0].rpartition("/")[0]):
        seen = list(group)
        first = seen[0][0]
        parents = plain_parts(first, root_uri=store.uri)[:-1]
        try:
            directory = open_directory(root, parents, path=first)
        except (OSError, PathEscapeError):
            # Deleting one by one reports the problem with the name of the first file.
            done += delete_one_by_one(store, seen)
            continue
        try:
            done += _delete_in(directory, len(folder) + 1 if folder else 0, seen, store.uri)
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
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if (
                status.st_size != size_bytes
                or status.st_mtime_ns // 1_000_000 != modified_ms
                or not stat.S_ISREG(status.st_mode)
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
