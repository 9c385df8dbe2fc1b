"""Committing a maintenance operation, with the checkpoint after it and the events of both."""

from __future__ import annotations

from delta_core.checkpoint.auxiliary_files import write_auxiliary_files
from delta_core.dml.post_commit import checkpoint_if_due, is_checkpoint_due
from delta_core.execution.reporter import ProgressReporter
from delta_core.transaction.commit_result import CommitResult, Committed
from delta_core.transaction.transaction import Transaction


def commit_with_events(transaction: Transaction, progress: ProgressReporter) -> CommitResult:
    """Commit, then write a checkpoint when one is due at the new version.

    Emits `commit.before`, `commit.after` and, when a checkpoint is due, `checkpoint.before` and
    `checkpoint.after`. A failed checkpoint is logged and does not change the result.
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
