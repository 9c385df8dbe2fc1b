"""A commit and the steps after it: checkpoints at an interval, the version's checksum, and log compaction.

After the commit has succeeded, a failure of such a step is logged and counted, but never raised.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from delta_core.checkpoint.auxiliary_files import write_auxiliary_files
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import InvalidTablePropertyError
from delta_core.execution.progress import SILENT, ProgressReporter
from delta_core.observability import CHECKPOINT_FAILED_TOTAL, METRICS
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import CHECKPOINT_INTERVAL
from delta_core.transaction.commit_result import CommitResult, Committed, raise_for_result

if TYPE_CHECKING:
    from delta_core.transaction.conflict_resolver import FileWritingResolver
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
    properties = transaction.properties
    is_due = properties.write_checkpoint and _is_checkpoint_due(
        result.snapshot, result.version - properties.first_counted_version + 1
    )
    if is_due:
        progress.emit("checkpoint.before", version=result.version)
        written = _write_checkpoint(result.snapshot, cleanup=properties.cleanup_expired_logs)
        progress.emit("checkpoint.after", version=result.version, written=written)
    write_auxiliary_files(
        result.snapshot,
        committed_version=result.version,
        txn_id=result.txn_id,
        with_checkpoint=is_due,
    )
    return result


def commit_or_raise(
    transaction: Transaction,
    progress: ProgressReporter = SILENT,
    *,
    owned: OwnedFiles | None = None,
    resolver: FileWritingResolver | None = None,
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


def _is_checkpoint_due(snapshot: Snapshot, commits: int) -> bool:
    """Whether a count is a multiple of `delta.checkpointInterval`, or of its default if it is invalid."""
    try:
        interval = snapshot.properties.checkpoint_interval
    except InvalidTablePropertyError as error:  # other engines accept any string
        _warn("the checkpoint interval is not usable", snapshot, error)
        interval = CHECKPOINT_INTERVAL.default
    return commits > 0 and commits % interval == 0


def _write_checkpoint(snapshot: Snapshot, *, cleanup: bool | None) -> bool:
    """Write a checkpoint; False when the write failed.

    Then log files older than the log retention are deleted, unless `delta.enableExpiredLogCleanup` is false.
    `cleanup` overrides that property.
    """
    try:
        write_checkpoint(snapshot)
    except Exception as error:  # the commit succeeded, and a later commit tries again
        METRICS.increment(CHECKPOINT_FAILED_TOTAL)
        _warn("checkpoint after commit failed", snapshot, error)
        return False
    try:
        wanted = snapshot.properties.enable_expired_log_cleanup if cleanup is None else cleanup
        if wanted and _may_have_expired(snapshot):
            cleanup_expired_logs(snapshot)
    except Exception as error:  # expired files that remain do no harm
        _warn("log cleanup after checkpoint failed", snapshot, error)
    return True


def _may_have_expired(snapshot: Snapshot) -> bool:
    """False for a table younger than its log retention. That avoids a listing of its whole log."""
    created_ms = snapshot.metadata.created_time_ms
    return created_ms is None or snapshot.clock.now_ms() - created_ms > snapshot.properties.log_retention_ms


def _warn(message: str, snapshot: Snapshot, error: Exception) -> None:
    fields = {"table": snapshot.store.uri, "version": snapshot.version, "error": str(error)}
    _log.warning(message, extra=fields)
