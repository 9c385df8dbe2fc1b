"""System calls of the local store: opening directories, flushing, detecting shares, translating errors.

Any writer of a table can create a symbolic link in it. Writes and deletions through that link would leave
the table. Each directory is therefore opened relative to its parent, never by its whole path.

A client of NFS or CIFS answers from its cache for some seconds: another machine's new file may not be listed
yet, and a name that was missing before may still seem to be missing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import sys
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from delta_core.errors import (
    NameBlockedError,
    NotWrittenError,
    ObjectNotFoundError,
    PathEscapeError,
    StorageError,
    StorageFullError,
    StorePermissionError,
)

MANY_FILES = 8
"""From this number of files on, one flush of the whole file system is cheaper than one flush per file."""

_OLDEST_KERNEL = (5, 8)
"""In older kernels syncfs(2) does not report write errors."""


class FileSystemFlush:
    """Flushes the file system of a directory. Create it before the files that it will flush are written.

    The kernel reports a write error once to each file descriptor that was open when the error occurred. A
    descriptor that is opened later does not see the error.
    """

    def __init__(self, directory: str) -> None:
        """Raises OSError when the directory does not exist."""
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)

    def flush(self) -> bool:
        """Make all data durable that any process wrote to the file system.

        Returns:
            False when the system has no such flush or does not report its errors; then nothing was flushed.

        Raises:
            OSError: some data could not be written.
        """
        call = _syncfs()
        if call is None:
            return False
        call(self._descriptor)
        return True


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


_MOUNTS = "/proc/self/mountinfo"

# FUSE may serve anything, such as buckets. Only the layers of containers are excluded.
_SHARED = re.compile(r"nfs\d?|cifs|smb\d?|smbfs|afs|davfs|fuse(\.(?!fuse-overlayfs$).*)?")
_SOME_SHARED = re.compile(r" - (nfs|cifs|smb|afs|davfs|fuse)")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_shared(path: str | os.PathLike[str]) -> bool:
    """Whether the path is on a share, whose files this machine caches. The path need not exist.

    False when the system does not provide mount information, as outside of Linux. Reads one small file.
    """
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except OSError:
        return False
    # Most machines have no such mount. Then no path needs to be compared with the mounts.
    if not _SOME_SHARED.search(mounts):
        return False
    kind = filesystem_of(Path(os.path.realpath(path)), mounts.split("\n"))
    return kind is not None and _SHARED.fullmatch(kind) is not None


def filesystem_of(path: Path, mounts: Iterable[str]) -> str | None:
    """The type of the file system of a resolved path, from lines of Linux's `mountinfo` (proc(5))."""
    deepest: tuple[int, str | None] = (-1, None)
    for line in mounts:
        left, _, right = line.partition(" - ")
        words = left.split(" ")
        if len(words) < 5 or not right:
            continue
        point = Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), words[4]))
        depth = len(point.parts)
        # A later mount at the same point covers an earlier one.
        if depth >= deepest[0] and path.is_relative_to(point):
            deepest = (depth, right.split(" ")[0])
    return deepest[1]


# These errors stay until there is more room.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def not_found(path: str) -> ObjectNotFoundError:
    """The error for a path without a file."""
    return ObjectNotFoundError(f"{path!r} does not exist.", fix="Check the path, or open the table again.")


def not_written(error: OSError, path: str) -> StorageError:
    """The error for a failure before the object has its name."""
    if isinstance(error, NotADirectoryError):
        return NameBlockedError(
            f"{path!r} cannot be created.",
            cause="A file has the name of a directory on the path.",
            fix="Find out which program created it, and move it away.",
        )
    error_of_write = translated(error, path, "write")
    if isinstance(error_of_write, StorePermissionError | StorageFullError):
        return error_of_write
    return NotWrittenError(error_of_write.problem, cause=error_of_write.cause, fix=error_of_write.fix)


def translated(error: OSError, path: str, verb: str) -> StorageError:
    """The DeltaError for a failed system call."""
    # A file whose name is too long cannot exist.
    missing = isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError))
    if (missing or error.errno == errno.ENAMETOOLONG) and verb in ("read", "inspect", "open"):
        return not_found(path)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return StorePermissionError(
            f"No permission to {verb} {path!r}.",
            cause=str(error),
            fix="Check the owner and mode of the directory.",
        )
    if error.errno in _FULL:
        return StorageFullError(
            f"The disk is too full to {verb} {path!r}.",
            cause=f"{errno.errorcode[error.errno]}: {error}",
            fix="Make room on the disk, or raise the quota or the limit on files, then repeat the operation.",
        )
    return StorageError(
        f"Could not {verb} {path!r}.", cause=str(error), fix="Check the disk, then repeat the operation."
    )


@cache
def _syncfs() -> Any:
    if sys.platform != "linux":
        return None
    match = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if match is None or (int(match[1]), int(match[2])) < _OLDEST_KERNEL:
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is not None:
        call.errcheck = _checked
    return call


def _checked(result: int, call: object, arguments: tuple[int]) -> int:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False
