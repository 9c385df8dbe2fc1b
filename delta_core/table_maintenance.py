"""The part of an open table that looks after its log and its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from delta_core.checkpoint.classic import CheckpointInfo
from delta_core.checkpoint.log_cleanup import LogCleanup, cleanup_expired_logs
from delta_core.checkpoint.write import write_checkpoint
from delta_core.clock import Clock
from delta_core.dml.write import TableHandle
from delta_core.maintenance.fsck.apply import FsckResult, apply_fsck, planned_only
from delta_core.maintenance.fsck.plan import plan_fsck
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
)


class _OpenTable(TableHandle, Protocol):
    """What the methods need of the table."""

    _allowed_roots: Sequence[LogStore]
    _clock: Clock


class TableMaintenance:
    """Methods of `DeltaTable`."""

    def repair(
        self: _OpenTable,
        dry_run: bool = True,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> FsckResult:
        """Take files out of the table whose data the store no longer has; their rows are lost.

        Only a file that the store was asked for by its name, and does not have, counts as missing. One that
        cannot be read for another reason, such as the lost file of its deletion vector, stays, and is named
        in `result.plan.unreadable`. Nothing is committed where nothing is missing.

        Args:
            dry_run: only say which files would go. The default, unlike in deltalake.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The plan and what came of it; `result.metrics` is what deltalake's `repair` returns.

        Raises:
            StorageError: the store could not say whether it has a file; nothing was committed.
            ConcurrentModificationError: another writer has removed one of the files meanwhile.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs what is not written.
        """
        require_commit_properties(commit_properties)
        self.update_incremental()
        plan = plan_fsck(self.snapshot, allowed_roots=self._allowed_roots, clock=self._clock)
        if dry_run:
            return planned_only(plan)
        result = apply_fsck(
            self.snapshot,
            plan,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self.adopt(result.committed.snapshot)
        return result

    def create_checkpoint(self: _OpenTable) -> CheckpointInfo:
        """Write a checkpoint of the handle's version."""
        return write_checkpoint(self.snapshot)

    def cleanup_metadata(self: _OpenTable, *, dry_run: bool = False) -> LogCleanup:
        """Delete log files that the table's log retention no longer needs."""
        return cleanup_expired_logs(self.snapshot, clock=self._clock, dry_run=dry_run)
