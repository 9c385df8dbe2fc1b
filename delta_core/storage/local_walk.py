"""The way from a table's root down to a directory, on which no link is followed.

Whoever can write to a table can put a link into it. What is written or deleted behind one would be outside
the table, so each directory is opened below the one before it, never by its whole path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from delta_core.errors import PathEscapeError

# Only to look names up below it: permission to enter a directory is enough, where the system can tell.
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY


def open_directory(root: Path, parts: Sequence[str], *, path: str, make: bool = False) -> int:
    """A descriptor of a directory below the root, for names below it. The caller closes it.

    The root itself may be a link. Cost: two system calls for each part.

    Args:
        root: of the table.
        parts: of the directory's path below it; none is the root itself.
        path: the object's, for messages.
        make: make what is missing below the root, each directory durable in its own parent.

    Raises:
        PathEscapeError: one of the parts is a symbolic link.
        FileNotFoundError: one of them is missing, or the root is; none before it is a link.
        NotADirectoryError: one of them is a file.
        OSError: another answer of the system.
    """
    descriptor = os.open(root, _ENTER)
    try:
        for part in parts:
            try:
                inner = _enter(part, descriptor, make=make)
            except OSError as error:
                if _is_link(part, descriptor):
                    raise link_on_the_way(path) from error
                raise
            os.close(descriptor)
            descriptor = inner
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _enter(name: str, directory: int, *, make: bool) -> int:
    try:
        return os.open(name, _ENTER | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
    # What only enters a directory cannot flush it.
    flushed = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
    try:
        os.fsync(flushed)
    finally:
        os.close(flushed)
    return os.open(name, _ENTER | os.O_NOFOLLOW, dir_fd=directory)


def is_in(directory: int, name: str) -> bool:
    """Whether a file just made by its whole path, under a random name, is in an opened directory.

    It is not when somebody put a link on the way meanwhile. One system call.
    """
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def link_on_the_way(path: str) -> PathEscapeError:
    """The error for an object that is behind a link."""
    return PathEscapeError(
        f"{path!r} is neither written nor deleted.",
        cause="A directory on the way is a symbolic link.",
        fix="Put the directory itself into the table, or delete the link if that is meant.",
    )


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False
