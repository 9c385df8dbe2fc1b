"""What a failed request to HDFS means for the caller of a store."""

from __future__ import annotations

from delta_core.errors import (
    AmbiguousWriteError,
    NameBlockedError,
    NotWrittenError,
    ObjectNotFoundError,
    StorageError,
    StorageFullError,
    StorePermissionError,
    WriteRefusedError,
)
from delta_core.storage.webhdfs_client import WebHdfsRefusedError, WebHdfsSilentError

WebHdfsFailure = WebHdfsRefusedError | WebHdfsSilentError
FAILURES = (WebHdfsRefusedError, WebHdfsSilentError)

_MISSING = frozenset({"FileNotFoundException", "InvalidPathException", "ParentNotDirectoryException"})
_DENIED = frozenset(
    {
        "AccessControlException",
        "AuthenticationException",
        "AuthorizationException",
        "InvalidToken",
        "SecurityException",
    }
)
# What stays so until somebody gives more room, or another name.
_QUOTAS = frozenset({"DSQuotaExceededException", "NSQuotaExceededException"})
_LIMITS = frozenset(
    {
        "DSQuotaExceededException",
        "InvalidPathException",
        "MaxDirectoryItemsExceededException",
        "NSQuotaExceededException",
        "PathComponentTooLongException",
        "QuotaByStorageTypeExceededException",
    }
)


def is_missing(error: BaseException) -> bool:
    """Whether a NameNode answered that there is no such path, or can be none.

    An answer 404 that is not WebHDFS's says nothing about a path: it comes from a wrong endpoint.
    """
    return isinstance(error, WebHdfsRefusedError) and error.exception in _MISSING


def did_nothing(error: WebHdfsFailure) -> bool:
    """Whether it is certain of a failed write, by its failure alone, that no server has done it or will."""
    if isinstance(error, WebHdfsSilentError):
        return not error.sent
    return error.exception in ("StandbyException", "SafeModeException")


def is_denied(error: WebHdfsRefusedError) -> bool:
    """Whether access was refused; the NameNode answers 403 to much else, but then names the exception."""
    return error.exception in _DENIED or error.status == 401 or (not error.exception and error.status == 403)


def not_found(path: str) -> ObjectNotFoundError:
    """The error for a path without an object."""
    return ObjectNotFoundError(f"{path!r} does not exist.", fix="Check the path, or open the table again.")


def blocked(path: str, error: Exception) -> NameBlockedError:
    """The error for a name that cannot be given."""
    return NameBlockedError(
        f"{path!r} cannot be created.",
        cause=f"A directory has the name, or a file has the name of one of its directories: {error}",
        fix="Find out what made it, and move it away.",
    )


def unclear(path: str, cause: str, *, overwrite: bool) -> StorageError:
    """The error for a rename of which it is not certain that it will never take place."""
    if overwrite:
        return StorageError(
            f"Whether {path!r} was written cannot be told.", cause=cause, fix="Write it once more."
        )
    return AmbiguousWriteError(
        f"Whether {path!r} was created cannot be told.", cause=cause, fix="Read it back."
    )


def not_written(error: WebHdfsFailure, path: str) -> StorageError:
    """The error of ours for a write of which it is certain that it did nothing, and will not."""
    found = translated(error, path, "write")
    if type(found) is not StorageError:
        return found
    return NotWrittenError(found.problem, cause=found.cause, fix=found.fix)


def translated(error: WebHdfsFailure, path: str, verb: str) -> StorageError:
    """The error of ours for a request that failed and changed nothing."""
    if isinstance(error, WebHdfsRefusedError):
        if error.exception in ("ParentNotDirectoryException", "FileAlreadyExistsException"):
            return blocked(path, error)
        if is_denied(error):
            return StorePermissionError(
                f"No permission to {verb} {path!r}.",
                cause=str(error),
                fix="Check the file's owner and mode, and the option 'user' or 'delegation_token'.",
            )
        if error.exception in _LIMITS and verb == "write":
            kind = StorageFullError if error.exception in _QUOTAS else WriteRefusedError
            return kind(
                f"HDFS takes no object {path!r}.",
                cause=str(error),
                fix="Ask for a higher quota, or give the table another place.",
            )
    return StorageError(
        f"Could not {verb} {path!r}.",
        cause=str(error),
        fix="Check that the NameNode and DataNodes can be reached, then try again.",
    )
