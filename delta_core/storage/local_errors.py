"""What the operating system's errors mean for the caller of a local store."""

from __future__ import annotations

import errno

from delta_core.errors import (
    NameBlockedError,
    NotWrittenError,
    ObjectNotFoundError,
    StorageError,
    StorageFullError,
    StorePermissionError,
)

# What stays so until somebody makes room.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def not_found(path: str) -> ObjectNotFoundError:
    """The error for a path without a file."""
    return ObjectNotFoundError(f"{path!r} does not exist.", fix="Check the path, or open the table again.")


def not_written(error: OSError, path: str) -> StorageError:
    """For a failure before anything has the object's name."""
    if isinstance(error, NotADirectoryError):
        return NameBlockedError(
            f"{path!r} cannot be created.",
            cause="A file has the name of a directory on the way.",
            fix="Find out what made it, and move it away.",
        )
    found = translated(error, path, "write")
    if isinstance(found, StorePermissionError | StorageFullError):
        return found
    return NotWrittenError(found.problem, cause=found.cause, fix=found.fix)


def translated(error: OSError, path: str, verb: str) -> StorageError:
    """The error of ours for a call to the system that failed."""
    # No file has a name that is too long to be one.
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
            f"There is no room to {verb} {path!r}.",
            cause=f"{errno.errorcode[error.errno]}: {error}",
            fix="Make room on the disk, or raise the quota or the limit on files, then try again.",
        )
    return StorageError(
        f"Could not {verb} {path!r}.", cause=str(error), fix="Check the disk, then try again."
    )
