"""Applying a repair: one commit that removes the missing files from the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_core.dml.post_commit import commit_or_raise
from delta_core.maintenance.fsck.file_lookup import absences, place_of
from delta_core.maintenance.fsck.plan import FsckPlan
from delta_core.maintenance.plan_json import require_same_table
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.file_actions import remove_actions


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckResult:
    """The result of a repair, or of a dry run.

    Attributes:
        plan: the plan.
        dry_run: True for a dry run, which changes nothing.
        files_removed: paths, in the log's spelling, of the removed files; in a dry run, of those to remove.
        bytes_removed: total size of these files.
        committed: the commit; None without a commit.
    """

    plan: FsckPlan
    dry_run: bool
    files_removed: tuple[str, ...] = ()
    bytes_removed: int = 0
    committed: Committed | None = None

    @property
    def version(self) -> int | None:
        """The committed version; None without a commit."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version

    @property
    def metrics(self) -> Mapping[str, Any]:
        """`dry_run` and `files_removed`, like the result of deltalake's `repair`."""
        return {"dry_run": self.dry_run, "files_removed": list(self.files_removed)}


def planned_only(plan: FsckPlan) -> FsckResult:
    """The result of a dry run."""
    return FsckResult(
        plan=plan,
        dry_run=True,
        files_removed=tuple(file.path for file in plan.missing),
        bytes_removed=plan.missing_bytes,
    )


def apply_fsck(snapshot: Snapshot, plan: FsckPlan, *, run: Run = DEFAULT_RUN) -> FsckResult:
    """Remove the plan's missing files from the table, in one commit.

    Each file is looked up again, so a file that was recovered since stays. Files that are no longer live are
    skipped. Without any remaining file, nothing is committed. The commit has the operation `FSCK` and
    `dataChange=true`, since rows are lost. It conflicts like a deletion of these files; appends do not
    conflict. A read of the change data of this version needs the removed files, so it fails with an error
    that names the first of them.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_fsck`, perhaps in another process.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        MaintenanceError: the plan is for another table.
        StorageError: the store failed to report whether it has a file; nothing was committed.
        ConcurrentModificationError: another commit has removed one of the files meanwhile.
        InvalidTableError: the table is append-only.
        UnsupportedTableFeatureError: the table requires a feature that this writer does not support.
    """
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    applied = run.already_applied(latest)
    if applied is not None:
        return FsckResult(plan=plan, dry_run=False, committed=applied)
    if plan.is_empty:
        return FsckResult(plan=plan, dry_run=False)
    latest.require_writable(writer_kind=WriterKind.RESTORE, operation="repair the table")
    files = _still_missing(latest, plan, run.access)
    if not files.num_rows:
        return FsckResult(plan=plan, dry_run=False)
    transaction = run.begin(
        latest,
        operation="FSCK",
        writer_kind=WriterKind.RESTORE,
        operation_parameters={"dryRun": False},
    )
    removes = list(remove_actions(files, deletion_timestamp_ms=run.now_ms(), data_change=True))
    paths = tuple(remove.path for remove in removes)
    size = sum(remove.size_bytes or 0 for remove in removes)
    transaction.add(*removes)
    transaction.set_metrics(
        {"numMissingFiles": len(paths), "numRemovedFiles": len(paths), "numRemovedBytes": size}
    )
    committed = commit_or_raise(transaction, run.progress)
    if committed.already_applied:
        return FsckResult(plan=plan, dry_run=False, committed=committed)
    return FsckResult(plan=plan, dry_run=False, files_removed=paths, bytes_removed=size, committed=committed)


def _still_missing(latest: Snapshot, plan: FsckPlan, access: DataAccess) -> pa.Table:
    """The live files of the plan that are still missing."""
    planned = {file.path for file in plan.missing}
    files = latest.files.to_table()
    files = files.filter(pa.array([path in planned for path in files["path"].to_pylist()], pa.bool_()))
    paths = files["path"].to_pylist()
    places = {path: place_of(path, latest.store, access) for path in paths}
    absent = absences(latest.store, places, access=access)
    missing = [path in absent and absent[path].is_sure for path in paths]
    return files.filter(pa.array(missing, pa.bool_()))
