"""Every error that deltaward raises, in one hierarchy.

Two questions decide what a caller does, so each class answers both: may the same call succeed if made again
(`retryable`), and did another writer win (`conflict`). Callers decide by class or flag, never by text.

A message says what is wrong, why, and what to do about it: `problem`, `cause`, `fix`. Names and paths in it
may be those of a hostile table, so it is one line that cannot drive a terminal.
"""

from __future__ import annotations

from typing import ClassVar


class DeltaError(Exception):
    """Base of all errors of deltaward.

    Attributes:
        problem, cause, fix: the message's parts, control characters in them shown as escapes.
        code: stable machine-readable name; goes into `JobResult.error.code`.
        retryable: True when repeating the same call later can succeed.
        conflict: True when a concurrent writer's commit is the reason.
    """

    code: ClassVar[str] = "DELTA_ERROR"
    retryable: ClassVar[bool] = False
    conflict: ClassVar[bool] = False

    def __init__(self, problem: str, *, cause: str = "", fix: str = "") -> None:
        self.problem = escape_control_characters(problem)
        self.cause = escape_control_characters(cause)
        self.fix = escape_control_characters(fix)
        super().__init__(self.problem, self.cause, self.fix)

    def __str__(self) -> str:
        parts = [self.problem]
        if self.cause:
            parts.append(f"Cause: {self.cause}")
        if self.fix:
            parts.append(f"Fix: {self.fix}")
        return " ".join(part if part.endswith((".", "!", "?")) else part + "." for part in parts)

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark workers, job results); rebuild with keywords.
        return (_rebuild, (type(self), self.problem, self.cause, self.fix))


def escape_control_characters(text: str) -> str:
    """The text with control and bidirectional-override characters as escapes.

    Table contents reach messages and the log; they must not forge lines or drive a terminal. What is escaped
    already stays as it is, so messages may hold others.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class DeltaWarning(UserWarning):
    """Something went wrong that the library could work around; the message says what and how."""


def _rebuild(cls: type[DeltaError], problem: str, cause: str, fix: str) -> DeltaError:
    return cls(problem, cause=cause, fix=fix)


def _rebuild_unknown(
    cls: type[CommitStateUnknownError], problem: str, cause: str, fix: str, txn_id: str, version: int | None
) -> CommitStateUnknownError:
    return cls(problem, cause=cause, fix=fix, txn_id=txn_id, version=version)


# ---------------------------------------------------------------- storage
class StorageError(DeltaError):
    """The store failed; nothing is known to be wrong with the table."""

    code = "STORAGE_ERROR"
    retryable = True


class ObjectNotFoundError(StorageError):
    """The named object does not exist."""

    code = "OBJECT_NOT_FOUND"
    retryable = False


class ObjectExistsError(StorageError):
    """A create-only write found the name taken. Proves nothing about whose object it is."""

    code = "OBJECT_EXISTS"
    retryable = False


class AmbiguousWriteError(StorageError):
    """A create-only write failed in a way that leaves open whether it landed."""

    code = "AMBIGUOUS_WRITE"


class StorePermissionError(StorageError):
    """The store refused access."""

    code = "STORE_PERMISSION_DENIED"
    retryable = False


class WriteRefusedError(StorageError):
    """The store cannot carry out a write, such as into a bucket that is not there. Nothing was created."""

    code = "WRITE_REFUSED"
    retryable = False


class NotWrittenError(StorageError):
    """A write failed before anything could take effect: nothing was written, nor will be later.

    The same call may succeed. Of a failure that leaves any doubt, `AmbiguousWriteError` is raised.
    """

    code = "NOT_WRITTEN"


class NameBlockedError(StorageError):
    """A name is taken by something that is no object, such as a directory. Nothing was created."""

    code = "NAME_BLOCKED"
    retryable = False


class UnsafeStoreError(StorageError):
    """The store cannot create a file exclusively, so commits could overwrite each other."""

    code = "UNSAFE_STORE"
    retryable = False


class StoreContractError(StorageError):
    """A store does not keep what `LogStore` promises; raised by the checks of `delta_core.conformance`."""

    code = "STORE_CONTRACT_BROKEN"
    retryable = False


# ---------------------------------------------------------------- tables
class InvalidTableError(DeltaError):
    """The table, as stored, cannot be read as asked."""

    code = "INVALID_TABLE"


class TableNotFoundError(InvalidTableError):
    """There is no Delta table at the URI."""

    code = "TABLE_NOT_FOUND"


class TableExistsError(InvalidTableError):
    """A table is already there and the call asked to create one."""

    code = "TABLE_EXISTS"


class VersionNotFoundError(InvalidTableError):
    """The version, or a version for the timestamp, is not (or no longer) in the log."""

    code = "VERSION_NOT_FOUND"


class CorruptLogError(InvalidTableError):
    """A log object is damaged or contradicts the protocol."""

    code = "CORRUPT_LOG"


class LogGapError(InvalidTableError):
    """A version is missing between two that exist."""

    code = "LOG_GAP"


class StaleListingError(StorageError):
    """A store with weak listings shows less of a table than it has shown before."""

    code = "STALE_LISTING"
    retryable = True


class MissingDataFileError(InvalidTableError):
    """A data file that the log lists is not in the store."""

    code = "MISSING_DATA_FILE"


class TableChangedError(InvalidTableError):
    """Rows were changed or removed where only new ones can be told from what was there before."""

    code = "TABLE_CHANGED"


class RowTrackingDisabledError(InvalidTableError):
    """Ids or versions of rows were asked for, and the table does not keep them."""

    code = "ROW_TRACKING_DISABLED"


class PathEscapeError(InvalidTableError):
    """A path in the log leaves the table's root."""

    code = "PATH_ESCAPE"


class ProtocolError(DeltaError):
    """The table needs something that this library does not do."""

    code = "PROTOCOL_ERROR"


class UnsupportedTableFeatureError(ProtocolError):
    """A table feature, named in the message, is not supported for this operation."""

    code = "UNSUPPORTED_TABLE_FEATURE"


class FeatureRemovalError(ProtocolError):
    """A table feature cannot be dropped now; the message says what still needs it."""

    code = "FEATURE_REMOVAL_REFUSED"


class IcebergCompatibilityError(ProtocolError):
    """A commit would break what `icebergCompatV1` or `icebergCompatV2` promises."""

    code = "ICEBERG_COMPATIBILITY"


# ---------------------------------------------------------------- schema, expressions, configuration
class SchemaError(DeltaError):
    """A schema is invalid or does not fit."""

    code = "SCHEMA_ERROR"


class SchemaMismatchError(SchemaError):
    """The data's columns or types are not the table's."""

    code = "SCHEMA_MISMATCH"


class SchemaEvolutionError(SchemaError):
    """The requested schema change is not allowed."""

    code = "SCHEMA_EVOLUTION_REFUSED"


class ConstraintViolationError(DeltaError):
    """Rows break a constraint; the message shows one of them."""

    code = "CONSTRAINT_VIOLATION"


class MergeDuplicateMatchError(DeltaError):
    """Several source rows match one target row; the message names some of their keys."""

    code = "MERGE_DUPLICATE_MATCH"


class ExpressionError(DeltaError):
    """A predicate or expression does not parse or does not fit the schema."""

    code = "INVALID_EXPRESSION"


class ConfigurationError(DeltaError):
    """An option, URI or property value is not valid."""

    code = "INVALID_CONFIGURATION"


class InvalidUriError(ConfigurationError):
    """The URI names no supported store."""

    code = "INVALID_URI"


class InvalidTablePropertyError(ConfigurationError):
    """A table property has a value that it cannot take."""

    code = "INVALID_TABLE_PROPERTY"


# ---------------------------------------------------------------- commits
class CommitError(DeltaError):
    """A commit did not happen."""

    code = "COMMIT_ERROR"


class CommitRejectedError(CommitError):
    """The store refused the commit and it cannot land later."""

    code = "COMMIT_REJECTED"


class CommitStateUnknownError(CommitError):
    """Whether the commit landed cannot be told; its data files were kept.

    A commit with an idempotency key is simply made again with the same key. Of another, look the transaction
    id up in the log first; docs/writing.md says how, and when its absence is final.

    Attributes:
        txn_id: `commitInfo.txnId` of the commit; empty when the raiser does not know it.
        version: the version that it would be; None when the raiser does not know it.
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
    """Other writers won every attempt until the limit."""

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
    """A file that this transaction removes was removed by another."""

    code = "CONCURRENT_DELETE_DELETE"


class MetadataChangedError(ConcurrentModificationError):
    """The table's metadata changed."""

    code = "METADATA_CHANGED"


class ProtocolChangedError(ConcurrentModificationError):
    """The table's protocol changed."""

    code = "PROTOCOL_CHANGED"


class ConcurrentTransactionError(ConcurrentModificationError):
    """Another writer committed the same application id."""

    code = "CONCURRENT_TRANSACTION"


class ConcurrentWriteError(ConcurrentModificationError):
    """Another writer won and its commit could not be examined."""

    code = "CONCURRENT_WRITE"


# ---------------------------------------------------------------- maintenance, jobs
class MaintenanceError(DeltaError):
    """A maintenance operation cannot run as asked."""

    code = "MAINTENANCE_ERROR"


class RetentionTooShortError(MaintenanceError):
    """The retention asked for could delete files that readers or writers still need."""

    code = "RETENTION_TOO_SHORT"


class RestoreError(MaintenanceError):
    """The table cannot be restored to the version."""

    code = "RESTORE_REFUSED"


class RestorePlanOutdatedError(RestoreError):
    """The table has versions that the restore's plan, which someone may have approved, did not see."""

    code = "RESTORE_PLAN_OUTDATED"
    conflict = True


class CloneError(MaintenanceError):
    """A table cannot be cloned to where it was asked to be."""

    code = "CLONE_REFUSED"


class CloneDivergedError(CloneError):
    """The target has a version that the source does not have, so the source's history is not its own."""

    code = "CLONE_DIVERGED"
    conflict = True


class CloneOutdatedError(CloneError):
    """The source's log was cleaned up while it was copied."""

    code = "CLONE_OUTDATED"
    retryable = True
    conflict = True


class VerificationError(MaintenanceError):
    """What was done does not match what was planned."""

    code = "VERIFICATION_FAILED"


class JobError(DeltaError):
    """A job cannot be run or did not succeed."""

    code = "JOB_ERROR"


class InvalidJobSpecError(JobError):
    """The job specification is malformed or of a newer format."""

    code = "INVALID_JOB_SPEC"


class JobFailedError(JobError):
    """The job ran and failed; its result holds the error."""

    code = "JOB_FAILED"


class QualitySuiteError(JobError):
    """A suite of expectations cannot be checked as it is; names the expectation."""

    code = "INVALID_QUALITY_SUITE"


class QualityGateError(JobError):
    """The data does not meet its suite of expectations; nothing of it was published."""

    code = "QUALITY_GATE_FAILED"


class LeaseError(DeltaError):
    """A lease or a reader's pin cannot be had or kept."""

    code = "LEASE_ERROR"


class LeaseHeldError(LeaseError):
    """Another holder has the lease; the message says who, and when it ends."""

    code = "LEASE_HELD"
    retryable = True


class LeaseLostError(LeaseError):
    """The lease ended or was taken over while its holder worked; nothing was committed since."""

    code = "LEASE_LOST"


class LeaseFileError(LeaseError):
    """A file of a lease or a pin is damaged or of a newer format; the message names it."""

    code = "INVALID_LEASE_FILE"
