"""Translation of the operating system's errors for the local store."""

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
