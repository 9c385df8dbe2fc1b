"""A commit and the steps after it: checkpoints at an interval, the version's checksum, and log compaction.

After the commit has succeeded, a failure of such a step is logged and counted, but never raised.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING

from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.log_compaction import compact_log
from delta_core.checkpoint.version_checksum import write_version_checksum
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import InvalidTablePropertyError
from delta_core.execution.progress import SILENT, ProgressReporter
from delta_core.observability import CHECKPOINT_FAILED_TOTAL, METRICS
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import CHECKPOINT_INTERVAL, TableProperty, parse_integer
from delta_core.transaction.commit_result import CommitResult, Committed, raise_for_result

if TYPE_CHECKING:
    from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger
    from delta_core.transaction.owned_files import OwnedFiles
    from delta_core.transaction.transaction import Transaction

_log = logging.getLogger(__name__)


def commit_and_checkpoint(transaction: Transaction, progress: ProgressReporter = SILENT) -> CommitResult:
    """Commit, then write a checkpoint when one is due, and the auxiliary files of the log.

    Emits `commit.before`, `commit.after` and, when a checkpoint is due, `checkpoint.before` and
    `checkpoint.after`.
    """
    progress.emit("commit.before", read_version=transaction.read_version)
    result = transaction.commit()
    version = result.version if isinstance(result, Committed) else None
    progress.emit("commit.after", outcome=type(result).__name__, version=version)
    if not isinstance(result, Committed) or result.already_applied or result.snapshot is None:
        return result
    if is_checkpoint_due(result.snapshot, result.version):
        progress.emit("checkpoint.before", version=result.version)
        written = checkpoint_if_due(result.snapshot, committed_version=result.version)
        progress.emit("checkpoint.after", version=result.version, written=written)
    write_auxiliary_files(result.snapshot, committed_version=result.version, txn_id=result.txn_id)
    return result


def commit_or_raise(
    transaction: Transaction,
    progress: ProgressReporter = SILENT,
    *,
    owned: OwnedFiles | None = None,
    resolver: DeletionVectorMerger | None = None,
) -> Committed:
    """Commit, and delete the operation's files when it is certain that no commit refers to them.

    Args:
        transaction: with all its actions.
        progress: see `commit_and_checkpoint`.
        owned: the files that the operation has written for this commit; None when it has written none.
        resolver: the transaction's resolver, which may have written further files.

    Raises:
        CommitError: the commit failed. On `CommitStateUnknownError` the files are kept.
        DeltaError: the errors of `Transaction.prepare`.
    """
    if owned is None:
        return raise_for_result(commit_and_checkpoint(transaction, progress))
    with owned.deleted_on_error():
        transaction.prepare()
    result = commit_and_checkpoint(transaction, progress)
    if resolver is None:
        owned.discard(result)
    else:
        resolver.discard(result, owned)
    return raise_for_result(result)


def checkpoint_if_due(snapshot: Snapshot, *, committed_version: int) -> bool:
    """Write a checkpoint when `committed_version` is a multiple of `delta.checkpointInterval`.

    Then log files older than the log retention are deleted, unless `delta.enableExpiredLogCleanup` is false.

    Returns:
        True when a checkpoint was written; False when none is due or the write failed.
    """
    if not is_checkpoint_due(snapshot, committed_version):
        return False
    try:
        write_checkpoint(snapshot)
    except Exception as error:  # the commit succeeded, and a later commit tries again
        METRICS.increment(CHECKPOINT_FAILED_TOTAL)
        _warn("checkpoint after commit failed", snapshot, error)
        return False
    try:
        if snapshot.properties.enable_expired_log_cleanup and _may_have_expired(snapshot):
            cleanup_expired_logs(snapshot)
    except Exception as error:  # expired files that remain do no harm
        _warn("log cleanup after checkpoint failed", snapshot, error)
    return True


def is_checkpoint_due(snapshot: Snapshot, committed_version: int) -> bool:
    """Whether a version is a multiple of `delta.checkpointInterval`, or of its default if it is invalid."""
    try:
        interval = snapshot.properties.checkpoint_interval
    except InvalidTablePropertyError as error:  # other engines accept any string
        _warn("the checkpoint interval is not usable", snapshot, error)
        interval = CHECKPOINT_INTERVAL.default
    return committed_version > 0 and committed_version % interval == 0


class ChecksumPolicy(StrEnum):
    """The commits for which a version checksum is written."""

    NEVER = "never"
    CHECKPOINT = "checkpoint"
    """With each checkpoint, if the writer has read the table's files. Other commits then save a request."""
    KNOWN = "known"
    """If the writer has read the table's files already; reading them could cost more than the commit."""
    ALWAYS = "always"


def _policy(value: str) -> ChecksumPolicy:
    try:
        return ChecksumPolicy(value.strip().lower())
    except ValueError:
        raise ValueError(f"It must be one of {', '.join(ChecksumPolicy)}.") from None


def _at_least_two(value: int | None) -> str | None:
    return None if value is None or value >= 2 else "It is below 2."


VERSION_CHECKSUM = TableProperty(
    key="deltaward.versionChecksum",
    default=ChecksumPolicy.CHECKPOINT,
    parse=_policy,
    accepted="never, checkpoint (with each), known (if the writer has read the table's files) or always",
    help="When a version's checksum file is written.",
)
LOG_COMPACTION_INTERVAL: TableProperty[int | None] = TableProperty(
    key="deltaward.logCompactionInterval",
    default=None,
    parse=parse_integer,
    validate=_at_least_two,
    accepted="a whole number from 2 on",
    help="Number of commits that one log compaction file combines. Unset writes no such files.",
)


def write_auxiliary_files(snapshot: Snapshot, *, committed_version: int, txn_id: str) -> None:
    """Write the checksum of a version that was just committed, and a log compaction file if one is due.

    A failure is logged and not raised. Requests: see `write_version_checksum` and `compact_log`.

    Args:
        snapshot: the table at the committed version or later. For a later version no checksum is written,
            since a checksum describes exactly its own version.
        committed_version: the version that was just committed.
        txn_id: `commitInfo.txnId` of the commit.
    """
    try:
        if _wants_checksum(snapshot, committed_version):
            write_version_checksum(snapshot, txn_id=txn_id)
    except Exception as error:  # the commit is complete, and its checksum is optional
        _warn("version checksum after commit failed", snapshot, error)
    try:
        interval = LOG_COMPACTION_INTERVAL.of(snapshot.metadata.configuration)
        if interval is not None and _due(snapshot, committed_version, interval):
            compact_log(snapshot, first=committed_version + 1 - interval, last=committed_version)
    except Exception as error:  # the commits exist, and a log compaction file is optional
        _warn("log compaction after commit failed", snapshot, error)


def _may_have_expired(snapshot: Snapshot) -> bool:
    """False for a table younger than its log retention. That avoids a listing of its whole log."""
    created_ms = snapshot.metadata.created_time_ms
    return created_ms is None or snapshot.clock.now_ms() - created_ms > snapshot.properties.log_retention_ms


def _warn(message: str, snapshot: Snapshot, error: Exception) -> None:
    fields = {"table": snapshot.store.uri, "version": snapshot.version, "error": str(error)}
    _log.warning(message, extra=fields)


def _wants_checksum(snapshot: Snapshot, committed_version: int) -> bool:
    policy = VERSION_CHECKSUM.of(snapshot.metadata.configuration)
    if policy is ChecksumPolicy.NEVER or snapshot.version != committed_version:
        return False
    if policy is ChecksumPolicy.ALWAYS:
        return True
    is_requested = policy is ChecksumPolicy.KNOWN or _has_checkpoint(snapshot, committed_version)
    return is_requested and snapshot.has_loaded_files


def _due(snapshot: Snapshot, committed_version: int, interval: int) -> bool:
    # A checkpoint of the same version makes the log compaction file unnecessary.
    return (committed_version + 1) % interval == 0 and not _has_checkpoint(snapshot, committed_version)


def _has_checkpoint(snapshot: Snapshot, committed_version: int) -> bool:
    return committed_version > 0 and committed_version % snapshot.properties.checkpoint_interval == 0
