"""The commit of a MERGE: its changes of files, the read set, and the clean-up when it fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import Action, AddCdcFile, AddFile
from delta_core.dml.commit_files import REMOVED_COLUMNS
from delta_core.dml.moved_rows import MovedRowsError
from delta_core.dml.post_commit import commit_or_raise
from delta_core.dml.row_statement import ChangedFiles
from delta_core.errors import ConcurrentDeleteDeleteError
from delta_core.expressions.ast import TRUE, Expression
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import resolve_data_path
from delta_core.table_features.feature import WriterKind
from delta_core.transaction import Committed, OwnedFiles, add_actions, num_records, remove_actions
from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger

OPERATION = "MERGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """The changes of a MERGE's commit, and the commit's read set.

    Attributes:
        files: the actions of data files and change data files, and the files that were written for them.
        read: files (LIVE_FILE_SCHEMA) whose rows were read.
        predicate: a predicate that holds for every row that the outcome depends on.
        definition: protocol and metadata actions.
        resolver: merges deletion vectors of concurrent statements; None where each of them is a conflict.
    """

    files: ChangedFiles
    read: pa.Table
    predicate: Expression
    definition: Sequence[Action]
    resolver: DeletionVectorMerger | None = None


def commit_change(
    snapshot: Snapshot,
    change: RowChange,
    *,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, Any],
    verified_at_ms: int,
    run: Run,
) -> Committed:
    """Commit the change, or delete the written files and raise.

    The written files are kept when it is unknown whether the commit landed.

    Raises:
        MovedRowsError: a compaction moved the rows to other files.
        ConcurrentModificationError: another writer changed the files or rows that were read.
        CommitStateUnknownError: a commit may refer to the files.
    """
    files, owned = change.files, change.files.owned
    with owned.deleted_on_error():
        transaction = run.begin(
            snapshot,
            operation=OPERATION,
            writer_kind=WriterKind.MERGE,
            operation_parameters=parameters,
            verified_at_ms=verified_at_ms,
            resolver=change.resolver,
        )
        transaction.read_predicate(None if change.predicate == TRUE else change.predicate)
        transaction.read_files(change.read.column("path").to_pylist())
        transaction.add(*change.definition)
        transaction.add(*files.removes, *files.adds, *files.changes).preserve_rows(True)
        transaction.set_metrics(metrics)
    try:
        return commit_or_raise(transaction, owned=owned, resolver=change.resolver)
    except ConcurrentDeleteDeleteError as error:
        if change.resolver is not None and change.resolver.rows_were_moved:
            raise MovedRowsError.of(error) from error
        raise


def replaced_files(
    snapshot: Snapshot,
    removed: pa.Table,
    *,
    added: Sequence[AddFile],
    changes: Sequence[AddCdcFile],
    run: Run,
) -> ChangedFiles:
    """The actions that remove files (LIVE_FILE_SCHEMA), and add those that the statement has written."""
    columns = removed.select(REMOVED_COLUMNS)
    return ChangedFiles(
        removes=tuple(remove_actions(columns, deletion_timestamp_ms=run.now_ms())),
        adds=tuple(added),
        changes=tuple(changes),
        written=tuple(added),
        owned=OwnedFiles(store=snapshot.store).with_data(added).with_changes(changes),
    )


def count_rows(snapshot: Snapshot, files: pa.Table) -> int:
    """The number of rows in files, from their statistics, or else from their Parquet footers."""
    return sum(_rows_of(snapshot, add) for add in add_actions(files, data_change=True))


def _rows_of(snapshot: Snapshot, add: AddFile) -> int:
    recorded = num_records(add)
    if recorded is not None:
        return recorded
    with snapshot.store.open_input(resolve_data_path(add.path, root_uri=snapshot.store.uri)) as source:
        return int(pq.read_metadata(source).num_rows)


def total_bytes(adds: Iterable[AddFile]) -> int:
    """The total size of added files in bytes."""
    return sum(add.size_bytes for add in adds)
