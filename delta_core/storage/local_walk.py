"""Opening a directory below a table's root without following symbolic links.

Any writer of a table can create a symbolic link in it. Writes and deletions through that link would leave
the table. Each directory is therefore opened relative to its parent, never by its whole path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from delta_core.errors import PathEscapeError

# For looking up names only: permission to enter a directory is enough where the system has O_PATH.
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY


def open_directory(
    root: Path, parts: Sequence[str], *, path: str, make: bool = False, flush: bool = True
) -> int:
    """A file descriptor of a directory below the root. The caller closes it.

    The root itself may be a link. Cost: two system calls for each part.

    Args:
        root: the root of the table.
        parts: the parts of the directory's path below the root; empty for the root itself.
        path: the path of the object, for messages.
        make: create missing directories below the root.
        flush: make each new directory durable in its own parent.

    Raises:
        PathEscapeError: a part is a symbolic link.
        FileNotFoundError: a part or the root is missing, and no part before it is a symbolic link.
        NotADirectoryError: a part is a file.
        OSError: any other error of the operating system.
    """
    descriptor = os.open(root, _ENTER)
    try:
        for part in parts:
            try:
                inner = _enter(part, descriptor, make=make, flush=flush)
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


def _enter(name: str, directory: int, *, make: bool, flush: bool) -> int:
    try:
        return os.open(name, _ENTER | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
    if flush:
        # A descriptor opened with O_PATH cannot flush the directory.
        flushed = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
        try:
            os.fsync(flushed)
        finally:
            os.close(flushed)
    return os.open(name, _ENTER | os.O_NOFOLLOW, dir_fd=directory)


def is_in(directory: int, name: str) -> bool:
    """Whether a file that was just created by its full path is in an opened directory.

    It is not when another process replaced a directory on the path by a link. One system call.
    """
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def link_on_the_way(path: str) -> PathEscapeError:
    """The error for an object whose path contains a symbolic link."""
    return PathEscapeError(
        f"{path!r} is neither written nor deleted.",
        cause="A directory on the path is a symbolic link.",
        fix="Put the directory itself into the table, or delete the symbolic link.",
    )


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False
