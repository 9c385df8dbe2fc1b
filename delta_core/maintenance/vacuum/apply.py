"""Executes a vacuum plan, with a commit before and a commit after it, as delta-spark does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY
from delta_core.dml.post_commit import commit_or_raise
from delta_core.errors import DeltaError
from delta_core.execution.executor import Executor, JsonObject
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.leases.pins import pins_in_force
from delta_core.log.log_path import commit_path
from delta_core.log.outer_tables import OuterTable, outer_tables
from delta_core.maintenance.plan_json import require_same_table
from delta_core.maintenance.vacuum.file_keys import ListedPaths, Rows
from delta_core.maintenance.vacuum.guard import require_deletable, require_table_directory
from delta_core.maintenance.vacuum.outer_tables import NeededByOuterTables
from delta_core.maintenance.vacuum.pinned import PinIdentity, Pins
from delta_core.maintenance.vacuum.plan import VacuumPlan
from delta_core.maintenance.vacuum.protected import LoggedRemoves, change_data_to_keep, keys_to_keep
from delta_core.maintenance.vacuum.task import delete_files
from delta_core.numpy_columns import to_numpy
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.task_stores import share_with_tasks
from delta_core.storage.unchanged import SeenObject
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.isolation import IsolationLevel

_LOGGER = logging.getLogger(__name__)

_FILES_PER_TASK = 250
_TASKS_PER_CHECK = 16
_LOCAL_THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumResult:
    """The result of a vacuum.

    Attributes:
        commits: the versions that record the start and the end; empty when there was nothing to do.
        kept: planned files that were not deleted, because a version of this table or of a table above needs
            them, they were rewritten, or they are in another table now.
        pins: labels of the pins that kept planned files.
    """

    deleted_files: int = 0
    deleted_bytes: int = 0
    kept: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    commits: tuple[int, ...] = ()
    already_applied: bool = False


def apply_vacuum(
    snapshot: Snapshot,
    plan: VacuumPlan,
    *,
    before_deleting: Callable[[], None] = lambda: None,
    run: Run = DEFAULT_RUN,
) -> VacuumResult:
    """Delete the plan's files that are still unreferenced.

    Before each group of deletions, the newest version and the pins are read again, also those of the tables
    above this table, so that files of a concurrent restore are kept. If the store's clock, read from the
    start commit, is behind this machine's clock, the cutoff is computed from the store's clock. The first
    error stops the vacuum and commits a VACUUM END with the status FAILED, without metrics.

    Args:
        snapshot: any version of the plan's table.
        plan: made by `plan_vacuum`, in this or another process.
        before_deleting: called before each group of deletions; an exception stops the vacuum.
        run: the surroundings. Only the end commit records the idempotency key. Without an executor, a local
            disk gets four threads.

    Raises:
        MaintenanceError: the plan is for another table, or contains files that a vacuum never deletes; or
            the file of a deletion vector, or the files of a table above, cannot be determined.
        UnsupportedTableFeatureError: since the plan, the table got a feature that is not supported.
        LeaseFileError: a reader's pin cannot be read.
        StorageError: the store failed. Some files of the plan may already be deleted.
    """
    latest = snapshot.refresh()
    require_same_table(latest, plan.table_id)
    latest.require_writable(writer_kind=WriterKind.VACUUM, operation="vacuum the table")
    require_table_directory(latest.store.uri)
    require_deletable(latest, plan.columns.each_path())
    if plan.is_empty:
        return VacuumResult()
    # Reads everything once before the start commit, so that unreadable metadata stops the vacuum here.
    keys_to_keep(latest, cutoff_ms=plan.cutoff_ms, removes=LoggedRemoves(cutoff_ms=plan.cutoff_ms))
    pins_in_force(latest.store, store_now_ms=0)
    above = outer_tables(latest.store)
    _needed_by_outer_tables(above, plan, run, now_ms=_planned_at_ms(plan)).rows()
    start = _commit_start(latest, plan, run.without_key())
    try:
        deletion = _Deletion(
            plan,
            store=latest.store,
            above=above,
            before_deleting=before_deleting,
            store_now_ms=latest.store.head(commit_path(start.version)).modified_ms,
            run=run,
        )
        latest = deletion.run(latest.refresh())
    except BaseException:
        with suppress(DeltaError):
            # A task that fails does not report the files that it has deleted, so there is no count.
            _commit_end(latest, "FAILED", {}, run.without_key())
        raise
    end = _commit_end(latest, "COMPLETED", deletion.metrics, run)
    if deletion.kept:
        _LOGGER.warning("Some planned files were not deleted.", extra={"files": len(deletion.kept)})
    return VacuumResult(
        deleted_files=deletion.deleted_files,
        deleted_bytes=deletion.deleted_bytes,
        kept=tuple(sorted(deletion.kept)),
        pins=tuple(sorted(deletion.pins)),
        commits=(start.version,) if end.already_applied else (start.version, end.version),
        already_applied=end.already_applied,
    )


class _Deletion:
    """The deletion of the plan's files, with its progress."""

    def __init__(
        self,
        plan: VacuumPlan,
        *,
        store: LogStore,
        above: Sequence[OuterTable],
        before_deleting: Callable[[], None],
        store_now_ms: int,
        run: Run,
    ) -> None:
        self._plan = plan
        self._executor = run.executor or _default_executor(store)
        self._progress = run.progress
        self._before_deleting = before_deleting
        self._pins = Pins()
        self._store_now_ms = store_now_ms
        self._cutoff_ms = _cutoff_by_store_time(plan, store_now_ms)
        self._removes = LoggedRemoves(cutoff_ms=self._cutoff_ms)
        self._paths = ListedPaths(plan.columns.column("path"))
        self._is_young = to_numpy(plan.columns.column("modified_ms")) >= self._cutoff_ms
        # Planned files that the newest version, and each pin, still needs; computed once per version or pin.
        self._needed: tuple[int, Rows] | None = None
        self._needed_by_pins: dict[PinIdentity, Rows] = {}
        self._needed_by_outer_tables = _needed_by_outer_tables(
            above, plan, run, now_ms=min(_planned_at_ms(plan), store_now_ms)
        )
        self.deleted_files = 0
        self.deleted_bytes = 0
        self.kept: set[str] = set()
        self.pins: set[str] = set()

    @property
    def metrics(self) -> Mapping[str, int]:
        """The metrics of the end commit, under the names of delta-spark."""
        return {
            "numDeletedFiles": self.deleted_files,
            "numVacuumedDirectories": self._plan.num_directories,
        }

    def run(self, latest: Snapshot) -> Snapshot:
        """Delete group by group; returns the newest version that was read."""
        total = len(self._paths)
        self._progress.emit("data.writing", done=0, total=total)
        for group in _slices(total, _FILES_PER_TASK * _TASKS_PER_CHECK):
            latest = latest.refresh()
            latest.require_writable(writer_kind=WriterKind.VACUUM, operation="vacuum the table")
            needed = (self._is_young | self._still_needed(latest))[group] | self._pinned(latest, group)
            needed |= self._needed_by_outer_tables.rows()[group]
            files = self._files(group)
            self.kept.update(path for (path, *_), is_needed in zip(files, needed, strict=True) if is_needed)
            unneeded = [file for file, is_needed in zip(files, needed, strict=True) if not is_needed]
            self._before_deleting()
            with share_with_tasks(latest.store):
                for _, result in self._executor.map(delete_files, self._tasks(latest.store.uri, unneeded)):
                    self.deleted_files += result["deleted"]
                    self.deleted_bytes += result["bytes"]
                    self.kept.update(result["kept"])
            self._progress.emit("data.writing", done=group.stop, total=total)
        self._progress.emit("data.written", files=self.deleted_files, bytes=self.deleted_bytes)
        return latest

    def _still_needed(self, latest: Snapshot) -> Rows:
        """The planned files that the newest version or recently committed change data needs."""
        if self._needed is None or self._needed[0] != latest.version:
            rows = keys_to_keep(latest, cutoff_ms=self._cutoff_ms, removes=self._removes).protect(self._paths)
            if pc.any(pc.starts_with(self._paths.column, f"{CHANGE_DATA_DIRECTORY}/")).as_py():
                # `plan_vacuum` has already read the commits since the plan's cutoff.
                read_up_to = self._plan.version if self._cutoff_ms == self._plan.cutoff_ms else -1
                recent = change_data_to_keep(latest, cutoff_ms=self._cutoff_ms, after_version=read_up_to)
                rows |= recent.protect(self._paths)
            self._needed = latest.version, rows
        return self._needed[1]

    def _pinned(self, latest: Snapshot, group: slice) -> Rows:
        pinned = np.zeros(group.stop - group.start, dtype=np.bool_)
        for item in self._pins.in_force(latest, store_now_ms=self._store_now_ms):
            identity = item.pin.identity
            if identity not in self._needed_by_pins:
                self._needed_by_pins[identity] = item.keys.protect(self._paths)
            rows = self._needed_by_pins[identity][group]
            if rows.any():
                self.pins.add(item.pin.label)
                pinned |= rows
        return pinned

    def _files(self, group: slice) -> list[SeenObject]:
        columns = self._plan.columns[group]
        return list(
            zip(
                columns.paths,
                columns.column("size_bytes").to_pylist(),
                columns.column("modified_ms").to_pylist(),
                strict=True,
            )
        )

    def _tasks(self, table_uri: str, files: Sequence[SeenObject]) -> list[JsonObject]:
        return [
            {"table_uri": table_uri, "files": [list(file) for file in files[chunk]]}
            for chunk in _slices(len(files), _FILES_PER_TASK)
        ]


def _default_executor(store: LogStore) -> Executor:
    """The default executor: threads for network shares and object stores, and fewer for a local disk.

    A file system that discards the blocks of each deleted file makes a deletion wait for the device.
    """
    is_local = not store.remote and store.consistent_listing
    return InlineExecutor(_LOCAL_THREADS if is_local else None)


def _slices(total: int, size: int) -> Iterator[slice]:
    for first in range(0, total, size):
        yield slice(first, min(first + size, total))


def _cutoff_by_store_time(plan: VacuumPlan, store_now_ms: int) -> int:
    """The plan's cutoff, or an earlier cutoff when the store's clock is behind this machine's clock."""
    return min(plan.cutoff_ms, plan.retention.cutoff_ms(store_now_ms))


def _needed_by_outer_tables(
    above: Sequence[OuterTable], plan: VacuumPlan, run: Run, *, now_ms: int
) -> NeededByOuterTables:
    return NeededByOuterTables(
        above,
        ListedPaths(plan.columns.column("path")),
        to_numpy(plan.columns.column("modified_ms")),
        clock=run.clock,
        now_ms=now_ms,
    )


def _planned_at_ms(plan: VacuumPlan) -> int:
    """The time of the plan, from which its cutoff is counted."""
    return plan.cutoff_ms + plan.retention.retention_ms + plan.retention.margin_ms


def _commit_start(latest: Snapshot, plan: VacuumPlan, run: Run) -> Committed:
    transaction = run.begin(
        latest,
        operation="VACUUM START",
        writer_kind=WriterKind.VACUUM,
        operation_parameters={
            "retentionCheckEnabled": plan.retention.enforced,
            "defaultRetentionMillis": latest.properties.deleted_file_retention_ms,
            "specifiedRetentionMillis": plan.retention.retention_ms if plan.retention.specified else None,
        },
        isolation=IsolationLevel.SNAPSHOT_ISOLATION,
    )
    transaction.set_metrics({"numFilesToDelete": len(plan.files), "sizeOfDataToDelete": plan.total_bytes})
    return commit_or_raise(transaction, run.progress)


def _commit_end(latest: Snapshot, status: str, metrics: Mapping[str, int], run: Run) -> Committed:
    transaction = run.begin(
        latest.refresh(),
        operation="VACUUM END",
        writer_kind=WriterKind.VACUUM,
        operation_parameters={"status": status},
        isolation=IsolationLevel.SNAPSHOT_ISOLATION,
    )
    transaction.set_metrics(metrics)
    return commit_or_raise(transaction, run.progress)
