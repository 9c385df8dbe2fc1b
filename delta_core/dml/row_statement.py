"""The common part of DELETE and UPDATE: find rows, change files, commit once, return metrics.

When the table enables deletion vectors (`delta.enableDeletionVectors`), a file that loses some of its rows
stays and gets a deletion vector (PROTOCOL.md, "Deletion Vectors"). Otherwise its other rows are copied to new
files with their row ids: in parallel groups of consecutive files, where one core decodes while another
encodes. The new files are in the order of the rows, and each group adds at most one small file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from delta_core.actions import AddCdcFile, AddFile, RemoveFile
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.data.write_plan import WritePlan, write_plan_of
from delta_core.deletion_vectors.file_update import removed, update_deletion_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.dml.find_rows import FileMatch, FoundRows, find_rows, row_matcher
from delta_core.dml.matched_rows import MatchedRows
from delta_core.dml.moved_rows import MovedRowsError
from delta_core.dml.post_commit import commit_or_raise
from delta_core.dml.sorted_rows import rows_of_any_order
from delta_core.errors import ConcurrentDeleteDeleteError, InvalidTableError
from delta_core.expressions.ast import Expression
from delta_core.expressions.render import to_spark_sql
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.table_properties import parse_bool
from delta_core.transaction.commit_result import AlreadyApplied, Committed
from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger
from delta_core.transaction.owned_files import OwnedFiles

_DELETION_VECTORS_FEATURE = "deletionVectors"
_DELETION_VECTORS_PROPERTY = "delta.enableDeletionVectors"
_GROUP_BYTES = 16 << 20
_MOST_GROUPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStatementResult:
    """The result of a statement.

    Attributes:
        committed: the commit; None when no row matched and the statement had no idempotency key to record.
        metrics: the metrics, named as in deltalake.
        history: the metrics of the commit, named as in delta-spark; empty when nothing was committed.
    """

    committed: Committed | None
    metrics: Mapping[str, int] = field(default_factory=dict, hash=False)
    history: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def version(self) -> int | None:
        """The committed version; None when nothing was committed."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """The actions of a statement, and the files that it has written for them.

    Attributes:
        removes, adds: actions of data files.
        changes: actions of change data files.
        written: the actions in `adds` whose files are new.
        dvs: the number of actions in `adds` that give an old file a new deletion vector.
        copied_rows: the number of rows copied unchanged to new files.
        changed_rows: the number of rows that the statement changed, when all of them were read.
        owned: all files that were written.
    """

    removes: tuple[RemoveFile, ...] = ()
    adds: tuple[AddFile, ...] = ()
    changes: tuple[AddCdcFile, ...] = ()
    written: tuple[AddFile, ...] = ()
    dvs: int = 0
    copied_rows: int = 0
    changed_rows: int | None = None
    owned: OwnedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStatement:
    """One statement on the rows of a snapshot that match a predicate.

    Attributes:
        snapshot: the version that the statement is based on.
        operation: the operation's name in the history.
        verb: the verb for messages, such as `delete`.
        counted: the part of metric names that stands for changed rows, such as `deleted`.
        target_file_size_bytes: the size of new files; the table's size when None.
        writer_kind: the kind of the writer that finds the rows and writes the files.
        run: the surroundings, such as the clock and the commit properties.
    """

    snapshot: Snapshot
    operation: str
    verb: str
    counted: str
    target_file_size_bytes: int | None = None
    writer_kind: WriterKind = WriterKind.ARROW_ROWS
    run: Run = DEFAULT_RUN

    @property
    def plan(self) -> WritePlan:
        """The write plan of the table. Raises the errors of `WritePlan.of`."""
        return write_plan_of(self.snapshot)

    @property
    def uses_deletion_vectors(self) -> bool:
        """Whether rows of the table are deleted by deletion vectors."""
        return uses_deletion_vectors(self.snapshot)

    def file_writer(self) -> RowFileWriter:
        """A writer of data files for existing rows of the table, which keep their row ids."""
        return RowFileWriter(
            self.snapshot.store,
            plan=self.plan,
            options=FileOptions(target_file_size_bytes=self.target_file_size_bytes, parquet=self.run.parquet),
            properties=self.plan.properties,
            keep_row_ids=True,
            clock=self.run.clock,
        )

    def matched_rows(
        self, predicate: Expression | None, *, alone: bool, unread: Collection[str] = ()
    ) -> MatchedRows:
        """A reader of the files with matching rows.

        Args:
            predicate: see `execute`.
            alone: whether no other thread reads such files at the same time.
            unread: see `MatchedRows`.
        """
        return MatchedRows(
            self.snapshot,
            predicate=predicate,
            allowed_roots=self.run.allowed_roots,
            unread=unread,
            use_threads=alone,
        )

    def already_done(self) -> AlreadyApplied | None:
        """The result when the table has the statement's idempotency key. Otherwise check that it may change.

        Returns:
            None when the statement is not applied yet and the table may be changed.

        Raises:
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs an unsupported feature. No file was written.
        """
        snapshot = self.snapshot
        applied = self.run.already_applied(snapshot)
        if applied is not None:
            return applied
        snapshot.require_writable(writer_kind=self.writer_kind, operation=f"{self.verb} rows")
        if snapshot.properties.append_only:
            raise InvalidTableError(
                f"The table is append-only, so {self.operation} cannot remove rows.",
                cause="The table property delta.appendOnly is true.",
                fix="Keep the rows, or set delta.appendOnly to false first.",
            )
        return None

    def execute(
        self,
        predicate: Expression | None,
        change: Callable[[FoundRows], ChangedFiles],
        *,
        find: Callable[[], FoundRows] | None = None,
        condition: str | None = None,
    ) -> RowStatementResult:
        """Find the rows, change their files, and commit.

        After a failed commit the new files are deleted, unless it is not known whether the commit landed.
        Nothing is committed when no row matches and the statement has no idempotency key.

        Args:
            predicate: the predicate, resolved against the table's schema; None stands for every row.
            change: writes the files of the commit. It must leave no file when it fails.
            find: finds the rows in place of `find_rows`. Then `predicate` need only hold for all of them.
            condition: the statement's condition for the history; that of `predicate` when None.

        Raises:
            MovedRowsError: another writer moved matching rows to other files. Nothing was committed.
            ConcurrentModificationError: another writer changed or added matching rows. Nothing was committed.
            CommitStateUnknownError: it is not known whether the commit landed. The written files were kept.
            DeltaError: the errors of `find_rows` and `change`.
        """
        started = monotonic()
        if find is None:
            found = find_rows(self.snapshot, predicate, allowed_roots=self.run.allowed_roots)
        else:
            found = find()
        scanned = monotonic()
        if not found.matches and self.run.commit.txn is None:
            times = {"scan_time_ms": _ms(scanned - started), "rewrite_time_ms": 0}
            return RowStatementResult(
                committed=None, metrics=self._metrics(found, None) | times | _total(started)
            )
        resolver = self.resolver(predicate)
        if condition is None and predicate is not None:
            condition = to_spark_sql(predicate)
        transaction = self.run.begin(
            self.snapshot,
            operation=self.operation,
            writer_kind=self.writer_kind,
            operation_parameters={"predicate": [] if condition is None else [condition]},
            resolver=resolver,
        )
        changes = change(found)
        times = {"scan_time_ms": _ms(scanned - started), "rewrite_time_ms": _ms(monotonic() - scanned)}
        metrics = self._metrics(found, changes) | times
        history = self._history(found, changes, metrics)
        with changes.owned.deleted_on_error():
            transaction.read_predicate(predicate).read_files(found.read_paths)
            transaction.add(*changes.removes, *changes.adds, *changes.changes).preserve_rows(True)
            transaction.set_metrics(history)
        try:
            committed = commit_or_raise(transaction, owned=changes.owned, resolver=resolver)
        except ConcurrentDeleteDeleteError as error:
            if resolver is not None and resolver.rows_were_moved:
                raise MovedRowsError.of(error) from error
            raise
        metrics |= self._committed_counts(committed, metrics)
        recorded = committed.operation_metrics
        history = {
            name: int(recorded.get(name, value)) for name, value in history.items() if value is not None
        }
        return RowStatementResult(committed=committed, metrics=metrics | _total(started), history=history)

    def rewritten(
        self,
        found: FoundRows,
        *,
        written: Sequence[AddFile],
        changes: Sequence[AddCdcFile],
        copied_rows: int,
    ) -> ChangedFiles:
        """The actions that remove each file with matching rows, and add the files `written` instead."""
        now_ms = self.run.now_ms()
        return ChangedFiles(
            removes=tuple(removed(match.file, deletion_timestamp_ms=now_ms) for match in found.matches),
            adds=tuple(written),
            changes=tuple(changes),
            written=tuple(written),
            copied_rows=copied_rows,
            owned=self._owned(written, changes),
        )

    def with_deletion_vectors(
        self, found: FoundRows, *, written: Sequence[AddFile] = (), changes: Sequence[AddCdcFile] = ()
    ) -> ChangedFiles:
        """The actions that add the written files, and delete the matching rows.

        The rows are deleted by deletion vectors, or together with whole files. One object is written for all
        deletion vectors, or none when only whole files are removed.
        """
        owned = self._owned(written, changes)
        now_ms = self.run.now_ms()
        partial = [
            (match, match.rows) for match in found.matches if not match.is_whole and match.rows is not None
        ]
        whole = [match for match in found.matches if match.is_whole]
        removes = [removed(match.file, deletion_timestamp_ms=now_ms) for match in whole]
        adds = []
        with owned.deleted_on_error():
            dvs = write_deletion_vectors(
                self.snapshot.store,
                (rows.positions for _, rows in partial),
                properties=self.snapshot.properties,
            )
        owned = owned.with_deletion_vectors(dvs.descriptors)
        with owned.deleted_on_error():
            for (match, rows), dv in zip(partial, dvs.descriptors, strict=True):
                update = update_deletion_vector(
                    match.file, dv, deletion_timestamp_ms=now_ms, num_records=rows.num_records
                )
                removes.append(update.remove)
                if update.add is not None:
                    adds.append(update.add)
        return ChangedFiles(
            removes=tuple(removes),
            adds=(*adds, *written),
            changes=tuple(changes),
            written=tuple(written),
            dvs=len(adds),
            owned=owned,
        )

    def resolver(
        self, predicate: Expression | None, *, may_insert: bool = False, settles: bool = True
    ) -> DeletionVectorMerger | None:
        """The resolver that merges deletion vectors of concurrent statements; None when rows are copied.

        Args:
            predicate: holds for every row that the statement could change; None when nothing is known.
            may_insert, settles: see `DeletionVectorMerger`.
        """
        if not self.uses_deletion_vectors:
            return None
        matches = None
        if predicate is not None:
            matches = row_matcher(self.snapshot, predicate, allowed_roots=self.run.allowed_roots)
        return DeletionVectorMerger(
            self.snapshot.store,
            matches=matches,
            moved=rows_of_any_order(self.snapshot, access=self.run.access),
            may_insert=may_insert,
            settles=settles,
            properties=self.snapshot.properties,
            access=self.run.access,
            clock=self.run.clock,
        )

    def _committed_counts(self, committed: Committed, metrics: Mapping[str, int]) -> dict[str, int]:
        """The counts of the commit. They differ when another writer deleted some of the rows first."""
        names = {
            f"num{self.counted.capitalize()}Rows": f"num_{self.counted}_rows",
            "numRemovedFiles": "num_removed_files",
            "numDeletionVectorsAdded": "num_deletion_vectors_added",
        }
        recorded = committed.operation_metrics
        return {
            name: int(recorded[history_name])
            for history_name, name in names.items()
            if history_name in recorded and name in metrics
        }

    def _owned(self, written: Sequence[AddFile], changes: Sequence[AddCdcFile]) -> OwnedFiles:
        return OwnedFiles(store=self.snapshot.store).with_data(written).with_changes(changes)

    def _metrics(self, found: FoundRows, changes: ChangedFiles | None) -> dict[str, int]:
        """The counts by deltalake's names. Files that get deletion vectors are neither added nor removed."""
        dvs = 0 if changes is None else changes.dvs
        counts = {
            "num_added_files": 0 if changes is None else len(changes.written),
            "num_removed_files": len(found.matches) - dvs,
            "num_copied_rows": 0 if changes is None else changes.copied_rows,
            "num_deletion_vectors_added": dvs,
        }
        matched = None if changes is None else changes.changed_rows
        if matched is None:
            matched = _sum([match.num_matching for match in found.matches])
        return counts if matched is None else {f"num_{self.counted}_rows": matched, **counts}

    def _history(self, found: FoundRows, changes: ChangedFiles, metrics: Mapping[str, int]) -> dict[str, Any]:
        """The metrics by delta-spark's names, for `operationMetrics`."""
        removed_files = [match for match in found.matches if match.is_whole or not changes.dvs]
        had_deletion_vectors = [match for match in found.matches if match.file.deletion_vector is not None]
        updated = [match for match in had_deletion_vectors if not match.is_whole and changes.dvs]
        return {
            "numRemovedFiles": metrics["num_removed_files"],
            "numAddedFiles": metrics["num_added_files"],
            "numAddedChangeFiles": len(changes.changes),
            "numRemovedBytes": sum(match.file.size_bytes for match in removed_files),
            "numAddedBytes": sum(file.size_bytes for file in changes.written),
            f"num{self.counted.capitalize()}Rows": metrics.get(f"num_{self.counted}_rows"),
            "numCopiedRows": metrics["num_copied_rows"],
            "numDeletionVectorsAdded": changes.dvs,
            "numDeletionVectorsRemoved": len(had_deletion_vectors),
            "numDeletionVectorsUpdated": len(updated),
            "scanTimeMs": metrics["scan_time_ms"],
            "rewriteTimeMs": metrics["rewrite_time_ms"],
            "executionTimeMs": metrics["scan_time_ms"] + metrics["rewrite_time_ms"],
        }


def uses_deletion_vectors(snapshot: Snapshot) -> bool:
    """Whether rows are deleted by deletion vectors: the table supports the feature and enables it."""
    if _DELETION_VECTORS_FEATURE not in (snapshot.protocol.writer_features or ()):
        return False
    value = snapshot.metadata.configuration.get(_DELETION_VECTORS_PROPERTY, "false")
    try:
        return parse_bool(value)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGroup:
    """The files that were written for a group of files.

    Attributes:
        written: data files.
        changes: change data files.
        changed_rows: the number of rows that the statement changed; 0 when it does not count them.
    """

    written: tuple[AddFile, ...] = ()
    changes: tuple[AddCdcFile, ...] = ()
    changed_rows: int = 0


def write_groups(
    store: LogStore,
    matches: Sequence[FileMatch],
    write: Callable[[Sequence[FileMatch]], WrittenGroup],
    *,
    cores: int | None = None,
) -> WrittenGroup:
    """Rewrite all files: in this thread when they are few or small, else in one thread for each group.

    Memory: that of `write`, once for each of at most four groups.

    Args:
        store: the table's store. When one group fails, the files that the other groups wrote are deleted.
        matches: the files.
        write: rewrites a group of files in any thread. It must leave no file when it fails.
        cores: the maximum number of groups; the number of this machine's cores when None.

    Raises:
        The error of `write` in the first group that failed. No written file of any group remains.
    """
    groups = _groups(matches, min(_MOST_GROUPS, cores or os.cpu_count() or 1))
    if len(groups) < 2:
        return write(matches)
    with ThreadPoolExecutor(len(groups), "deltaward-rewrite") as pool:
        running = [pool.submit(write, group) for group in groups]
    failed = next((error for future in running if (error := future.exception()) is not None), None)
    if failed is not None:
        _delete_written(store, running)
        raise failed
    parts = [future.result() for future in running]
    return WrittenGroup(
        written=tuple(add for part in parts for add in part.written),
        changes=tuple(file for part in parts for file in part.changes),
        changed_rows=sum(part.changed_rows for part in parts),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _total(started: float) -> dict[str, int]:
    return {"execution_time_ms": _ms(monotonic() - started)}


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _groups(matches: Sequence[FileMatch], most: int) -> list[Sequence[FileMatch]]:
    """At most `most` groups of about equal size in bytes, each large enough to be worth a thread."""
    total = sum(match.file.size_bytes for match in matches)
    count = min(most, len(matches), total // _GROUP_BYTES)
    if count < 2:
        return [matches]
    groups: list[list[FileMatch]] = [[]]
    taken = 0
    for match in matches:
        if groups[-1] and len(groups) < count and taken * count >= total * len(groups):
            groups.append([])
        groups[-1].append(match)
        taken += match.file.size_bytes
    return list(groups)


def _delete_written(store: LogStore, ended: Sequence[Future[WrittenGroup]]) -> None:
    """Delete the files of the groups that succeeded. No commit was attempted that could refer to them."""
    for future in ended:
        if future.exception() is None:
            part = future.result()
            OwnedFiles(store=store).with_data(part.written).with_changes(part.changes).delete()
