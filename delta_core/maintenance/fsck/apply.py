"""Carrying a repair out: one commit that removes the files that are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.execution.reporter import SILENT, ProgressReporter
from delta_core.maintenance.commit import commit_with_events
from delta_core.maintenance.fsck.plan import FsckPlan
from delta_core.maintenance.fsck.presence import absences, place_of
from delta_core.maintenance.rewriting.planned_files import require_same_table
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import AlreadyApplied, Committed, raise_for_result
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.idempotency import already_applied
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckResult:
    """What a repair did, or would do.

    Attributes:
        plan: what was found.
        dry_run: True when nothing was to be changed.
        files_removed: paths, as in the log, of the files that were taken out, or would be.
        bytes_removed: how large they were.
        committed: the commit; None when there was none.
    """

    plan: FsckPlan
    dry_run: bool
    files_removed: tuple[str, ...] = ()
    bytes_removed: int = 0
    committed: Committed | None = None

    @property
    def version(self) -> int | None:
        """The version that was committed; None when none was."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version

    @property
    def metrics(self) -> Mapping[str, Any]:
        """`dry_run` and `files_removed`, as deltalake's `repair` returns them."""
        return {"dry_run": self.dry_run, "files_removed": list(self.files_removed)}


def planned_only(plan: FsckPlan) -> FsckResult:
    """The result of a dry run."""
    return FsckResult(
        plan=plan,
        dry_run=True,
        files_removed=tuple(file.path for file in plan.missing),
        bytes_removed=plan.missing_bytes,
    )


def apply_fsck(
    snapshot: Snapshot,
    plan: FsckPlan,
    *,
    allowed_roots: Sequence[LogStore] = (),
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    progress: ProgressReporter = SILENT,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> FsckResult:
    """Take the plan's missing files out of the table, in one commit.

    Each is asked for once more, so one that was brought back since stays, and one that is no longer live is
    left out. Nothing is committed where none is left. The commit is one of `FSCK` with `dataChange=true`:
    the rows are gone. It conflicts as a deletion of these files does; appends do not disturb it. A reader of
    the change data of this version needs the removed files, so it fails by naming the first of them.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_fsck`, perhaps in another process.
        allowed_roots: as in `plan_fsck`.
        properties: provenance, idempotency key and limits of the commit. A key that the table has already
            makes this run do nothing.
        progress: sees the phases of the commit.
        observer: sees the phases of the commit, too, for tests.
        clock: where time comes from.

    Raises:
        MaintenanceError: the plan is for another table.
        StorageError: the store could not say whether it has a file; nothing was committed.
        ConcurrentModificationError: another commit has removed one of the files meanwhile.
        InvalidTableError: the table is append-only.
        UnsupportedTableFeatureError: the table needs something that this writer does not do.
    """
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    found = already_applied(latest, properties.txn)
    if found is not None:
        applied = AlreadyApplied(version=latest.version, attempts=0, snapshot=latest, transaction=found)
        return FsckResult(plan=plan, dry_run=False, committed=applied)
    if plan.is_empty:
        return FsckResult(plan=plan, dry_run=False)
    latest.require_writable(writer_kind=WriterKind.RESTORE, operation="repair the table")
    files = _still_missing(latest, plan, allowed_roots, clock)
    if not files.num_rows:
        return FsckResult(plan=plan, dry_run=False)
    transaction = Transaction.begin(
        latest,
        operation="FSCK",
        writer_kind=WriterKind.RESTORE,
        operation_parameters={"dryRun": False},
        properties=properties,
        observer=observer,
        clock=clock,
    )
    removes = list(remove_actions(files, deletion_timestamp_ms=clock.now_ms(), data_change=True))
    paths = tuple(remove.path for remove in removes)
    size = sum(remove.size_bytes or 0 for remove in removes)
    transaction.add(*removes)
    transaction.set_metrics(
        {"numMissingFiles": len(paths), "numRemovedFiles": len(paths), "numRemovedBytes": size}
    )
    committed = raise_for_result(commit_with_events(transaction, progress))
    if committed.already_applied:
        return FsckResult(plan=plan, dry_run=False, committed=committed)
    return FsckResult(plan=plan, dry_run=False, files_removed=paths, bytes_removed=size, committed=committed)


def _still_missing(
    latest: Snapshot, plan: FsckPlan, allowed_roots: Sequence[LogStore], clock: Clock
) -> pa.Table:
    """The live files of the plan that are not there now, either."""
    planned = {file.path for file in plan.missing}
    files = latest.files.to_table()
    files = files.filter(pa.array([path in planned for path in files["path"].to_pylist()], pa.bool_()))
    access = DataAccess(allowed_roots=tuple(allowed_roots))
    paths = files["path"].to_pylist()
    found = absences(
        latest.store,
        {path: place_of(path, latest.store, access) for path in paths},
        allowed_roots=allowed_roots,
        clock=clock,
    )
    gone = [path in found and found[path].is_sure for path in paths]
    return files.filter(pa.array(gone, pa.bool_()))
