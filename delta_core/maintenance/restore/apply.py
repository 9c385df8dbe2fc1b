"""Applying a restore in one commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core.dml.post_commit import commit_or_raise
from delta_core.errors import ConcurrentModificationError, MissingDataFileError, RestorePlanOutdatedError
from delta_core.maintenance.restore.files import RestoredFile, file_keys, missing_files
from delta_core.maintenance.restore.plan import RestorePlan, plan_restore
from delta_core.maintenance.restore.state import restored_domains, restored_metadata, restored_protocol
from delta_core.maintenance.row_counts import uncounted_adds, with_needed_counts
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.iceberg_compat import active_compatibility
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.file_actions import add_actions, remove_actions
from delta_core.transaction.isolation import IsolationLevel

_NAMED_COMMITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """The result of a restore; `committed=None` means that the table already equalled the target version."""

    committed: Committed | None
    files_added: int = 0
    files_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0

    @property
    def version(self) -> int | None:
        """The version that was committed."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


def apply_restore(
    snapshot: Snapshot,
    plan: RestorePlan,
    *,
    ignore_missing_files: bool = False,
    by_timestamp: bool = False,
    expected_version: int | None = None,
    run: Run = DEFAULT_RUN,
) -> RestoreResult:
    """Commit the plan, if the same plan still applies to the newest version.

    Files with their deletion vectors, schema, partitioning, properties and metadata domains become those of
    the target version. The protocol stays, since readers may rely on it; a feature that was dropped since the
    target version is added again. Assigned numbers stay, too (`state.py`), and so do `txn` entries: a retry
    of a load that was undone does not apply the load again. Rows get the row ids that they had. The undone
    versions stay in the log, so a restore can itself be undone.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_restore`.
        ignore_missing_files: True leaves out files that the store no longer has; their rows are lost.
        by_timestamp: record the target in the history by its time instead of its version.
        expected_version: the newest version that the plan's approver saw. With None the plan is also applied
            after newer commits, if they do not change the plan.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        RestorePlanOutdatedError: the newest version is not the expected one.
        MissingDataFileError: data files of the target were deleted, for instance by a vacuum. If that
            happened during the commit, the restore is committed, and the error has its version.
        ConcurrentModificationError: the table changed after the plan, in a way that changes the plan.
        InvalidTableError: the table is append-only, or the footer of a file whose rows must be counted
            (`with_needed_counts`) cannot be read.
        UnsupportedTableFeatureError: the table requires a feature that this writer does not support.
    """
    latest = snapshot.refresh()
    applied = run.already_applied(latest) if latest.metadata.id == plan.table_id else None
    if applied is not None:
        # The plan no longer matches the table, since an earlier run has applied it.
        return RestoreResult(committed=applied)
    if expected_version is not None:
        require_version(latest, expected_version)
    latest.require_writable(writer_kind=WriterKind.RESTORE, operation="restore the table")
    current = plan_restore(latest, version=plan.target_version, run=run)
    if _effect(current) != _effect(plan):
        raise ConcurrentModificationError(
            f"The table changed between version {plan.version}, for which the restore was planned, "
            f"and version {latest.version}.",
            fix="Check the new commits, and plan the restore again.",
        )
    if current.missing and not ignore_missing_files:
        raise MissingDataFileError(
            f"Data files of version {plan.target_version} are missing in the store: {len(current.missing)}, "
            f"such as {current.missing[0]!r}.",
            cause="A vacuum deleted the files, or they were lost.",
            fix="Restore a later version, recover the files, or pass ignore_missing_files=True, which loses "
            "their rows.",
        )
    if current.is_empty:
        return RestoreResult(committed=None)
    target = Snapshot.load(latest.store, version=plan.target_version, clock=run.clock)
    left_out = set(current.missing)
    adds = [file for file in current.added if file.path not in left_out]
    transaction = run.begin(
        latest,
        operation="RESTORE",
        writer_kind=WriterKind.RESTORE,
        operation_parameters={
            "version": None if by_timestamp else plan.target_version,
            "timestamp": _iso(plan.target_timestamp_ms) if by_timestamp else None,
        },
        # Under a weaker level, rows that another writer appends meanwhile would survive the restore.
        isolation=IsolationLevel.SERIALIZABLE,
    )
    # Restored rows get the row ids that their files had.
    transaction.read_predicate(None).reuse_files().preserve_rows(True)
    protocol, metadata = restored_protocol(latest, target), latest.metadata
    if protocol != latest.protocol:
        transaction.add(protocol)
    if current.metadata_changes:
        metadata = restored_metadata(latest, target)
        transaction.add(metadata)
    transaction.add(*restored_domains(latest, target))
    removed = _chosen(latest.files.to_table(), current.removed)
    transaction.add(*remove_actions(removed, deletion_timestamp_ms=run.now_ms(), data_change=True))
    restored = list(add_actions(_chosen(target.files.to_table(), adds), data_change=True))
    if current.renumbered:
        numbered = _chosen(target.files.to_table(), current.renumbered)
        restored += add_actions(numbered, data_change=False)
    if not set(active_compatibility(protocol, metadata)) <= set(
        active_compatibility(latest.protocol, latest.metadata)
    ):
        touched = {file.path for file in (*current.removed, *current.renumbered, *adds)}
        restored += uncounted_adds(latest.files.to_table(), without=touched)
    transaction.add(
        *with_needed_counts(
            latest.store,
            restored,
            protocol=protocol,
            metadata=metadata,
            access=run.access,
        )
    )
    result = _metrics(current, adds)
    bytes_missing = sum(file.size_bytes for file in current.added if file.path in left_out)
    transaction.set_metrics(
        {
            "tableSizeAfterRestore": current.bytes_after - bytes_missing,
            "numOfFilesAfterRestore": current.files_after - len(left_out),
            "numRemovedFiles": result.files_removed,
            "numRestoredFiles": result.files_added,
            "removedFilesSize": result.bytes_removed,
            "restoredFilesSize": result.bytes_added,
        }
    )
    run.progress.emit("data.written", files=0)
    committed = commit_or_raise(transaction, run.progress)
    _require_still_there(latest, adds, committed, run.allowed_roots)
    return RestoreResult(
        committed=committed,
        files_added=result.files_added,
        files_removed=result.files_removed,
        bytes_added=result.bytes_added,
        bytes_removed=result.bytes_removed,
    )


def require_version(snapshot: Snapshot, expected: int) -> None:
    """Refuse a restore when the newest version is not the one that the plan was made for.

    Raises:
        RestorePlanOutdatedError: the error names the newer commits that the log still has.
    """
    if snapshot.version == expected:
        return
    if snapshot.version < expected:
        cause = f"The newest version is only {snapshot.version}. The table may have been replaced."
    else:
        newer = history(snapshot, limit=min(snapshot.version - expected, _NAMED_COMMITS))
        named = ", ".join(f"{entry.version} ({entry.commit_info.operation or 'unknown'})" for entry in newer)
        more = snapshot.version - expected - len(newer)
        cause = f"There are newer commits: {named}" + (f" and {more} more." if more > 0 else ".")
    raise RestorePlanOutdatedError(
        f"The restore was planned for version {expected}, which is not the newest version.",
        cause=cause,
        fix="Plan the restore again, and have the new plan approved.",
    )


def _require_still_there(
    latest: Snapshot,
    adds: Sequence[RestoredFile],
    committed: Committed,
    allowed_roots: Sequence[LogStore],
) -> None:
    """Check the files again after the commit, since a concurrent vacuum may have deleted them meanwhile."""
    missing: tuple[str, ...] = ()
    if adds and not committed.already_applied:
        missing = missing_files(latest.store, adds, allowed_roots=allowed_roots)
    if missing:
        raise MissingDataFileError(
            f"The restore is committed as version {committed.version}, but the store no longer has "
            f"{len(missing)} of the restored data files, such as {missing[0]!r}.",
            cause="A concurrent vacuum deleted the files.",
            fix=f"Wait until the vacuum has ended, and restore version {latest.version}. Then restore a "
            "later target version, or this one without the missing files.",
        )


def _effect(plan: RestorePlan) -> tuple[object, ...]:
    return (
        plan.table_id,
        frozenset(plan.added),
        frozenset(plan.removed),
        frozenset(plan.renumbered),
        plan.metadata_changes,
        plan.changes.beyond_metadata,
    )


def _metrics(plan: RestorePlan, adds: Iterable[RestoredFile]) -> RestoreResult:
    sizes = [file.size_bytes for file in adds]
    return RestoreResult(
        committed=None,
        files_added=len(sizes),
        files_removed=len(plan.removed),
        bytes_added=sum(sizes),
        bytes_removed=sum(file.size_bytes for file in plan.removed),
    )


def _chosen(files: pa.Table, chosen: Iterable[RestoredFile]) -> pa.Table:
    paths = {file.path for file in chosen}
    mask = pa.array([path in paths for path, _ in file_keys(files)], pa.bool_())
    return files.filter(mask)


def _iso(timestamp_ms: int) -> str:
    return dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC).isoformat(timespec="milliseconds")
