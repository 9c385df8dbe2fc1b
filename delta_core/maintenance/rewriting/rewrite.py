"""Rewrites live files and commits the new files: the same rows in other files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import AddFile, Metadata
from delta_core.data.file_writer import Compression
from delta_core.dml.post_commit import commit_or_raise
from delta_core.dml.row_statement import uses_deletion_vectors
from delta_core.dml.sorted_rows import rows_of_any_order
from delta_core.maintenance.rewriting.layout import layout_fields
from delta_core.maintenance.rewriting.metrics import operation_metrics
from delta_core.maintenance.rewriting.planned_files import LiveSources, PlannedFile, still_live
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.task_stores import share_with_tasks
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.carried_deletions import DeletionCarrier
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.row_map import MovedRows, RowMap, RowsInOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The operation that `commitInfo` records.

    Attributes:
        name: `operation`, as delta-spark names it.
        parameters: `operationParameters`, as delta-spark writes them.
    """

    name: str
    parameters: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The result of rewriting files.

    Attributes:
        committed: the commit.
        adds: the new files.
        rows: number of rows in the new files.
        deletion_vectors: number of old files that had a deletion vector.
        deleted_rows: number of rows that these deletion vectors marked as deleted.
    """

    committed: Committed
    adds: tuple[AddFile, ...]
    rows: int
    deletion_vectors: int
    deleted_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFiles:
    """The files that a rewrite has written.

    Attributes:
        adds: the new files.
        rows: the number of their rows.
        moved: where the rows of the old files are, if the rewrite kept their order; None if it did not.
    """

    adds: Sequence[AddFile]
    rows: int
    moved: Sequence[MovedRows] | None = None


WriteFiles = Callable[[Mapping[str, Any], LiveSources], NewFiles]
"""Writes the new files, from the result of `layout_fields` and the old files as in the log.

It leaves no file when it fails."""


def rewrite(
    latest: Snapshot,
    files: Sequence[PlannedFile],
    write: WriteFiles,
    *,
    planned_version: int,
    operation: Operation,
    compression: Compression | None = None,
    definition: Metadata | None = None,
    run: Run,
) -> Rewritten:
    """Write new files with the rows of live files, and replace the files in one commit.

    Rows of a table with row tracking keep their row ids and row commit versions. Readers of the change data
    feed see no change. When the commit fails, the new files are deleted, unless its outcome is unknown.

    If the table uses deletion vectors, rows that other commits delete meanwhile are deleted from the new
    files (`carried_deletions`). If `write` does not keep the order of rows, the rows are found by their row
    ids or their values.

    Args:
        latest: the newest version, after a check that this writer can rewrite the table's files.
        files: the old files.
        write: writes the new files.
        planned_version: the version that the files were chosen from, for error messages.
        operation: the operation that `commitInfo` records.
        compression: the Parquet codec of the new files; the table's codec when None.
        definition: new metadata of the table, with another layout of files, to commit with the files. Then
            `files` must be all live files. The commit is not rebased: a file that another commit added would
            have the old layout.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        ConcurrentDeleteDeleteError: a file is no longer live.
        ConcurrentModificationError: another commit conflicts.
        MaxCommitAttemptsError: `definition` is set, and another writer committed first.
        MissingDataFileError, InvalidTableError, VerificationError: a file could not be rewritten.
        PathEscapeError: a file is neither in the table nor below an allowed root.
    """
    planned = {file.path: file.size_bytes for file in files}
    removed = still_live(latest, planned, planned_version=planned_version)
    sources = LiveSources.of(removed, store=latest.store, access=run.access)
    layout = layout_fields(
        latest, access=run.access, compression=compression, definition=definition, parquet=run.parquet
    )
    with share_with_tasks(*run.allowed_roots, latest.store):
        new = write(layout, sources)
    adds = new.adds
    run.progress.emit("stats.collected", files=len(adds), rows=new.rows)
    resolver = _resolver(latest, new, run) if definition is None else None
    owned = OwnedFiles(store=latest.store).with_data(adds)
    with owned.deleted_on_error():
        transaction = (run if definition is None else run.only_next()).begin(
            latest,
            operation=operation.name,
            writer_kind=WriterKind.REWRITE,
            operation_parameters=operation.parameters,
            isolation=None if definition is None else IsolationLevel.SERIALIZABLE,
            resolver=resolver,
        )
        transaction.preserve_rows(True)
        if definition is not None:
            transaction.read_predicate(None).add(definition)
        removes = remove_actions(removed, deletion_timestamp_ms=run.now_ms(), data_change=False)
        transaction.add(*removes, *adds)
        transaction.set_metrics(
            operation_metrics(list(planned.values()), adds, deletion_vectors=sources.num_deletion_vectors)
        )
    return Rewritten(
        committed=commit_or_raise(transaction, run.progress, owned=owned, resolver=resolver),
        adds=tuple(adds),
        rows=new.rows,
        deletion_vectors=sources.num_deletion_vectors,
        deleted_rows=sources.num_deleted_rows,
    )


def _resolver(latest: Snapshot, new: NewFiles, run: Run) -> DeletionCarrier | None:
    """The resolver for deletions of concurrent commits; None in a table without deletion vectors."""
    if not uses_deletion_vectors(latest):
        return None
    rows: RowMap = rows_of_any_order(latest, access=run.access)
    if new.moved is not None:
        rows = RowsInOrder(new.moved)
    return DeletionCarrier(
        latest.store, rows, properties=latest.properties, access=run.access, clock=run.clock
    )
