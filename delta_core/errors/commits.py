"""Errors of commits: refused, with an unknown outcome, or lost to another writer."""

from __future__ import annotations

from delta_core.errors.base import DeltaError


class CommitError(DeltaError):
    """The commit did not succeed."""

    code = "COMMIT_ERROR"


class CommitRejectedError(CommitError):
    """The store refused the commit. The commit cannot take effect later."""

    code = "COMMIT_REJECTED"


class CommitStateUnknownError(CommitError):
    """It is not known whether the commit took effect. Its data files were kept.

    Repeat a commit that has an idempotency key with the same key. Without a key, look up the transaction id
    in the log first; docs/writing.md describes how, and when the absence of the id is final.

    Attributes:
        txn_id: `commitInfo.txnId` of the commit; empty when it is not known.
        version: the version that the commit tried to create; None when it is not known.
    """

    code = "COMMIT_STATE_UNKNOWN"

    def __init__(
        self, problem: str, *, cause: str = "", fix: str = "", txn_id: str = "", version: int | None = None
    ) -> None:
        super().__init__(problem, cause=cause, fix=fix)
        self.txn_id = txn_id
        self.version = version

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.problem, self.cause, self.fix, self.txn_id, self.version)
        return (_rebuild_unknown, (type(self), *fields))


class MaxCommitAttemptsError(CommitError):
    """In each attempt, up to the limit, another writer committed the version first."""

    code = "MAX_COMMIT_ATTEMPTS"
    retryable = True
    conflict = True


class StaleCommitError(CommitError):
    """The writer's snapshot is too old for its commit to be safe."""

    code = "STALE_COMMIT"
    retryable = True


class ConcurrentModificationError(CommitError):
    """A concurrent commit conflicts with this transaction."""

    code = "CONCURRENT_MODIFICATION"
    retryable = True
    conflict = True


class ConcurrentAppendError(ConcurrentModificationError):
    """Files were added that this transaction would have read."""

    code = "CONCURRENT_APPEND"


class ConcurrentDeleteReadError(ConcurrentModificationError):
    """A file that this transaction read was removed."""

    code = "CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteError(ConcurrentModificationError):
    """Another transaction removed a file that this transaction removes, too."""

    code = "CONCURRENT_DELETE_DELETE"


class MetadataChangedError(ConcurrentModificationError):
    """The table's metadata changed."""

    code = "METADATA_CHANGED"


class ProtocolChangedError(ConcurrentModificationError):
    """The table's protocol changed."""

    code = "PROTOCOL_CHANGED"


class ConcurrentTransactionError(ConcurrentModificationError):
    """Another writer committed a `txn` action with the same application id."""

    code = "CONCURRENT_TRANSACTION"


class ConcurrentWriteError(ConcurrentModificationError):
    """Another writer committed the version first, and its commit could not be checked for conflicts."""

    code = "CONCURRENT_WRITE"


def _rebuild_unknown(
    cls: type[CommitStateUnknownError], problem: str, cause: str, fix: str, txn_id: str, version: int | None
) -> CommitStateUnknownError:
    return cls(problem, cause=cause, fix=fix, txn_id=txn_id, version=version)
