"""Translation of failed HDFS requests into errors of a store."""

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
# These errors stay until there is more room, or another name is used.
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
    """Whether a NameNode answered that the path does not exist, or cannot exist.

    A 404 that does not come from WebHDFS has no meaning for a path: it comes from a wrong endpoint.
    """
    return isinstance(error, WebHdfsRefusedError) and error.exception in _MISSING


def did_nothing(error: WebHdfsFailure) -> bool:
    """Whether the failure of a write alone proves that no server has carried it out or will."""
    if isinstance(error, WebHdfsSilentError):
        return not error.sent
    return error.exception in ("StandbyException", "SafeModeException")


def is_denied(error: WebHdfsRefusedError) -> bool:
    """Whether access was refused. The NameNode also answers 403 to other failures, with their exception."""
    return error.exception in _DENIED or error.status == 401 or (not error.exception and error.status == 403)


def not_found(path: str) -> ObjectNotFoundError:
    """The error for a path without an object."""
    return ObjectNotFoundError(f"{path!r} does not exist.", fix="Check the path, or open the table again.")


def blocked(path: str, error: Exception) -> NameBlockedError:
    """The error for a name that cannot be created."""
    return NameBlockedError(
        f"{path!r} cannot be created.",
        cause=f"A directory has the name, or a file has the name of one of its directories: {error}",
        fix="Find out which program created it, and move it away.",
    )


def unclear(path: str, cause: str, *, overwrite: bool) -> StorageError:
    """The error for a rename that may have taken place, or may take place later."""
    if overwrite:
        return StorageError(
            f"It is not known whether {path!r} was written.", cause=cause, fix="Write the object again."
        )
    return AmbiguousWriteError(
        f"It is not known whether {path!r} was created.",
        cause=cause,
        fix="Read the object to see whether it was created.",
    )


def not_written(error: WebHdfsFailure, path: str) -> StorageError:
    """The error for a write that certainly had no effect and will have none."""
    error_of_write = translated(error, path, "write")
    if type(error_of_write) is not StorageError:
        return error_of_write
    return NotWrittenError(error_of_write.problem, cause=error_of_write.cause, fix=error_of_write.fix)


def translated(error: WebHdfsFailure, path: str, verb: str) -> StorageError:
    """The error for a request that failed and changed nothing."""
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
                f"HDFS refused the object {path!r}.",
                cause=str(error),
                fix="Request a higher quota, or move the table to another location.",
            )
    return StorageError(
        f"Could not {verb} {path!r}.",
        cause=str(error),
        fix="Check that the NameNode and DataNodes can be reached, then repeat the operation.",
    )
