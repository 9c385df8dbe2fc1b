"""UPDATE: rows that match a predicate get new values in some columns, in one commit.

The updated rows are written to new files, with the row ids that they have. Where the table asks for deletion
vectors the old rows go by them, else the other rows of a file are copied (`row_statement`). A table with a
change data feed gets each row as it was and as it is, since the log's words about files would tell of rows
that were deleted and inserted (PROTOCOL.md, "Change Data Files").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.row_batch import RowBatch
from delta_core.data.row_pipeline import RowPipeline
from delta_core.dml.assignments import Assignments, Updates
from delta_core.dml.change_files import Change, ChangeFileWriter, records_changes
from delta_core.dml.commit_files import resolve_predicate
from delta_core.dml.file_groups import WrittenGroup, write_groups
from delta_core.dml.find_rows import FileMatch, FoundRows
from delta_core.dml.matched_rows import Mask, MatchedRows, rows_where, with_rows
from delta_core.dml.row_statement import ChangedFiles, RowStatement, RowStatementResult
from delta_core.expressions.ast import Expression
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult(RowStatementResult):
    """What an UPDATE did.

    Its metrics are num_updated_rows, num_copied_rows, num_added_files, num_removed_files, scan_time_ms,
    rewrite_time_ms, execution_time_ms and num_deletion_vectors_added. A row to which the value was assigned
    that it had counts as updated.
    """


def update_rows(
    snapshot: Snapshot,
    updates: Updates | None = None,
    predicate: Expression | str | None = None,
    *,
    new_values: Updates | None = None,
    allowed_roots: Sequence[LogStore] = (),
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    target_file_size_bytes: int | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> UpdateResult:
    """Assign values to columns of the rows for which a predicate is true; where it is null, a row stays.

    All values are worked out from the row as it was. Generated columns to which nothing is assigned are
    computed anew, others are checked; a partition column may be assigned, and the row moves. When the commit
    does not happen, the new files are deleted unless it cannot be told whether it happened.

    Args:
        snapshot: the state that the statement is based on.
        updates: by column, or by the path of a nested field, Spark SQL text, a tree or a Python value that
            is no text.
        predicate: Spark SQL text or a tree; None is every row.
        new_values: by column, Python values.
        allowed_roots: see `Scan`.
        properties: provenance, idempotency key and limits of the commit.
        target_file_size_bytes: of new files; the table's when None.
        observer: sees the commit's phases.
        clock: where time comes from.

    Cost: see `find_rows`; then each file with matching rows is read once more in all columns, and its
    updated rows are written, without vectors all of its rows. With vectors one more object is written, or
    none where all files go as a whole. A change data feed has each updated row written twice more.

    Raises:
        ConfigurationError: nothing is assigned, or one column twice.
        ExpressionError: the predicate or an assignment is invalid, does not fit the schema, or fails on a
            row; a value is none of its column's type.
        SchemaMismatchError: an identity column is assigned.
        ConstraintViolationError: a row would break a constraint, NOT NULL or a generated column; shows it.
        InvalidTableError: the table is append-only; or a file cannot be read.
        UnsupportedTableFeatureError: the table needs what is not written; no file was.
        ConcurrentModificationError: another writer has changed or added such rows; nothing was written.
        CommitStateUnknownError: the store never said whether the commit landed; files were kept.
    """
    statement = RowStatement(
        snapshot=snapshot,
        operation="UPDATE",
        verb="update",
        counted="updated",
        allowed_roots=allowed_roots,
        properties=properties,
        target_file_size_bytes=target_file_size_bytes,
        observer=observer,
        clock=clock,
    )
    done = statement.already_done()
    if done is not None:
        return UpdateResult(committed=done)
    now_us = clock.now_ms() * 1000
    assignments = Assignments(updates, new_values, plan=statement.plan, now_us=now_us)
    pipeline = RowPipeline(statement.plan, now_us=now_us)
    resolved = resolve_predicate(predicate, snapshot.schema)

    def change(found: FoundRows) -> ChangedFiles:
        return _changed(statement, resolved, found, assignments, pipeline)

    result = statement.run(resolved, change)
    return UpdateResult(committed=result.committed, metrics=result.metrics)


def _changed(
    statement: RowStatement,
    predicate: Expression | None,
    found: FoundRows,
    assignments: Assignments,
    pipeline: RowPipeline,
) -> ChangedFiles:
    snapshot, plan = statement.snapshot, statement.plan
    tells = records_changes(snapshot.protocol, snapshot.metadata)
    copies = not statement.uses_deletion_vectors
    # Copied rows keep what they have, and a change data feed tells what rows were.
    unread = frozenset[str]() if copies or tells else assignments.unread
    differing = assignments.columns | {column.name for column in plan.generated}

    def write(matches: Sequence[FileMatch]) -> WrittenGroup:
        rows = statement.matched_rows(predicate, alone=len(matches) == len(found.matches), unread=unread)
        updated_rows = 0
        with (
            statement.file_writer() as files,
            ChangeFileWriter(snapshot.store, plan, clock=statement.clock) as changes,
        ):
            for match in matches:
                for batch, matching in _batches(rows, match, copies=copies):
                    old = rows_where(batch, matching)
                    if not old.num_rows:
                        files.write(batch)
                        continue
                    new = pipeline.updated_rows(assignments.apply(old))
                    files.write(with_rows(batch, matching, new, columns=differing))
                    updated_rows += new.num_rows
                    if tells:
                        changes.write(old.columns, Change.BEFORE_UPDATE)
                        changes.write(new.columns, Change.AFTER_UPDATE)
            return WrittenGroup(
                written=tuple(files.finish()), changes=changes.finish(), changed_rows=updated_rows
            )

    group = write_groups(snapshot.store, found.matches, write)
    if copies:
        copied = sum(match.num_left for match in found.matches)
        changed = statement.rewritten(found, written=group.written, changes=group.changes, copied_rows=copied)
    else:
        changed = statement.with_deletion_vectors(found, written=group.written, changes=group.changes)
    return replace(changed, changed_rows=group.changed_rows)


def _batches(rows: MatchedRows, match: FileMatch, *, copies: bool) -> Iterator[tuple[RowBatch, Mask]]:
    """The rows of a file that are written anew, and which of them match: all, where no others are copied."""
    if copies:
        yield from rows.marked(match)
        return
    for batch in rows.matching(match):
        yield batch, np.ones(batch.num_rows, np.bool_)
