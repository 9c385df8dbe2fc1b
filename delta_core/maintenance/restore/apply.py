"""Carrying a restore out: one commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConcurrentModificationError, MissingDataFileError, RestorePlanOutdatedError
from delta_core.execution.reporter import SILENT, ProgressReporter
from delta_core.maintenance.commit import commit_with_events
from delta_core.maintenance.restore.files import RestoredFile, file_keys, missing_files
from delta_core.maintenance.restore.plan import RestorePlan, plan_restore
from delta_core.maintenance.restore.state import restored_domains, restored_metadata, restored_protocol
from delta_core.maintenance.row_counts import uncounted_adds, with_needed_counts
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.table_features.iceberg_compat import active_compatibility
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import AlreadyApplied, Committed, raise_for_result
from delta_core.transaction.file_actions import add_actions, remove_actions
from delta_core.transaction.idempotency import already_applied
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.transaction import Transaction

_NAMED_COMMITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What a restore did; `committed` is None when the table was already what it was."""

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
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    progress: ProgressReporter = SILENT,
    by_timestamp: bool = False,
    expected_version: int | None = None,
    allowed_roots: Sequence[LogStore] = (),
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> RestoreResult:
    """Commit the plan, if it is still what the newest version needs.

    Files with their deletion vectors, schema, partitioning, properties and metadata domains become those of
    the target version. The protocol stays, since a reader may rely on it; a feature that was dropped since
    comes back. So do numbers that were given out (`state.py`), and `txn` entries: a load that was applied
    once and undone is not applied again by a retry of the same job. Rows come back with the row ids that
    they had. The versions that are undone stay in the log, so a
    restore can itself be undone.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_restore`.
        ignore_missing_files: True leaves out files that the store no longer has; their rows are lost.
        properties: provenance, idempotency key and limits of the commit. A key that the table has already
            makes this run do nothing, whatever the table is by now.
        by_timestamp: record the target in the history by its time instead of its version.
        expected_version: the newest version that the plan's approver saw; None leaves it to the plan, which
            also goes through when newer commits change nothing of it.
        allowed_roots: as in `plan_restore`.
        progress: sees the phases of the commit.
        observer: sees the phases of the commit, too, for tests.
        clock: where time comes from.

    Raises:
        RestorePlanOutdatedError: the table has versions after the expected one, or not that one.
        MissingDataFileError: data files of the target were deleted, by a vacuum for instance. Where that
            was while the restore committed, its version is in the log, as the error says.
        ConcurrentModificationError: the table changed since the plan, in a way that matters to it.
        InvalidTableError: the table is append-only, or the footer of a file whose rows must be counted
            (`with_needed_counts`) cannot be read.
        UnsupportedTableFeatureError: the table needs something that this writer does not do.
    """
    latest = snapshot.refresh()
    found = already_applied(latest, properties.txn) if latest.metadata.id == plan.table_id else None
    if found is not None:
        # The table is no longer what the plan was made for, since an earlier run restored it.
        return RestoreResult(
            committed=AlreadyApplied(version=latest.version, attempts=0, snapshot=latest, transaction=found)
        )
    if expected_version is not None:
        require_version(latest, expected_version)
    latest.require_writable(writer_kind=WriterKind.RESTORE, operation="restore the table")
    current = plan_restore(latest, version=plan.target_version, allowed_roots=allowed_roots, clock=clock)
    if _effect(current) != _effect(plan):
        raise ConcurrentModificationError(
            f"the table changed between version {plan.version}, which the restore was planned for, "
            f"and version {latest.version}",
            fix="look at the new commits and plan again",
        )
    if current.missing and not ignore_missing_files:
        raise MissingDataFileError(
            f"{len(current.missing)} data files of version {plan.target_version} are not in the store, "
            f"such as {current.missing[0]!r}",
            cause="a vacuum deleted them, or they were lost",
            fix="restore a later version, bring the files back, or ignore missing files and lose their rows",
        )
    if current.is_empty:
        return RestoreResult(committed=None)
    target = Snapshot.load(latest.store, version=plan.target_version, clock=clock)
    left_out = set(current.missing)
    adds = [file for file in current.added if file.path not in left_out]
    transaction = Transaction.begin(
        latest,
        operation="RESTORE",
        writer_kind=WriterKind.RESTORE,
        operation_parameters={
            "version": None if by_timestamp else plan.target_version,
            "timestamp": _iso(plan.target_timestamp_ms) if by_timestamp else None,
        },
        properties=properties,
        # Rows appended meanwhile would survive the restore under a weaker level.
        isolation=IsolationLevel.SERIALIZABLE,
        observer=observer,
        clock=clock,
    )
    # Rows come back with the ids that their files had.
    transaction.read_predicate(None).reuse_files().preserve_rows(True)
    protocol, metadata = restored_protocol(latest, target), latest.metadata
    if protocol != latest.protocol:
        transaction.add(protocol)
    if current.metadata_changes:
        metadata = restored_metadata(latest, target)
        transaction.add(metadata)
    transaction.add(*restored_domains(latest, target))
    removed = _chosen(latest.files.to_table(), current.removed)
    transaction.add(*remove_actions(removed, deletion_timestamp_ms=clock.now_ms(), data_change=True))
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
            access=DataAccess(allowed_roots=tuple(allowed_roots), clock=clock),
        )
    )
    result = _figures(current, adds)
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
    progress.emit("data.written", files=0)
    committed = raise_for_result(commit_with_events(transaction, progress))
    _require_still_there(latest, adds, committed, allowed_roots)
    return RestoreResult(
        committed=committed,
        files_added=result.files_added,
        files_removed=result.files_removed,
        bytes_added=result.bytes_added,
        bytes_removed=result.bytes_removed,
    )


def require_version(snapshot: Snapshot, expected: int) -> None:
    """Refuse to go on from another version than the one that was looked at.

    Raises:
        RestorePlanOutdatedError: names the commits since, as far as the log tells of them.
    """
    if snapshot.version == expected:
        return
    if snapshot.version < expected:
        cause = f"the newest version is {snapshot.version}: this may be another table"
    else:
        newer = history(snapshot, limit=min(snapshot.version - expected, _NAMED_COMMITS))
        named = ", ".join(f"{entry.version} ({entry.commit_info.operation or 'unknown'})" for entry in newer)
        more = snapshot.version - expected - len(newer)
        cause = f"newer commits: {named}" + (f" and {more} more" if more > 0 else "")
    raise RestorePlanOutdatedError(
        f"the restore was planned for version {expected}, which is not the newest one",
        cause=cause,
        fix="plan again, and have the new plan approved",
    )


def _require_still_there(
    latest: Snapshot,
    adds: Sequence[RestoredFile],
    committed: Committed,
    allowed_roots: Sequence[LogStore],
) -> None:
    """Look once more: a vacuum that had begun before may have deleted what was there a moment ago."""
    gone: tuple[str, ...] = ()
    if adds and not committed.already_applied:
        gone = missing_files(latest.store, adds, allowed_roots=allowed_roots)
    if gone:
        raise MissingDataFileError(
            f"The restore is committed as version {committed.version}, and {len(gone)} of the data files "
            f"that it brought back are gone by now, such as {gone[0]!r}",
            cause="a vacuum was deleting them at the same time",
            fix=f"wait until the vacuum has ended, restore version {latest.version}, then a later version "
            "than this one, or this one without the missing files",
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


def _figures(plan: RestorePlan, adds: Iterable[RestoredFile]) -> RestoreResult:
    sizes = [file.size_bytes for file in adds]
    return RestoreResult(
        committed=None,
        files_added=len(sizes),
        files_removed=len(plan.removed),
        bytes_added=sum(sizes),
        bytes_removed=sum(file.size_bytes for file in plan.removed),
    )


def _chosen(files: pa.Table, wanted: Iterable[RestoredFile]) -> pa.Table:
    paths = {file.path for file in wanted}
    mask = pa.array([path in paths for path, _ in file_keys(files)], pa.bool_())
    return files.filter(mask)


def _iso(timestamp_ms: int) -> str:
    return dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC).isoformat(timespec="milliseconds")
