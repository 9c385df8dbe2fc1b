"""UPDATE: assigns new values to columns of the rows that match a predicate, in one commit.

The updated rows are written to new files with their row ids. When the table enables deletion vectors, the old
rows are deleted by them. Otherwise the remaining rows of a file are copied (`row_statement`). A table with a
change data feed gets each row before and after the update in change data files, because the `add` and
`remove` actions would report deleted and inserted rows (PROTOCOL.md, "Change Data Files").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from delta_core.data.row_batch import RowBatch
from delta_core.data.row_pipeline import RowPipeline
from delta_core.dml.assignments import Assignments, Updates
from delta_core.dml.change_files import Change, ChangeFileWriter, records_changes
from delta_core.dml.commit_files import resolve_predicate
from delta_core.dml.find_rows import FileMatch, FoundRows
from delta_core.dml.matched_rows import Mask, MatchedRows, rows_where, with_rows
from delta_core.dml.moved_rows import follow_moved_rows
from delta_core.dml.row_statement import (
    ChangedFiles,
    RowStatement,
    RowStatementResult,
    WrittenGroup,
    write_groups,
)
from delta_core.expressions.ast import Expression
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult(RowStatementResult):
    """The result of an UPDATE.

    Its metrics are num_updated_rows, num_copied_rows, num_added_files, num_removed_files, scan_time_ms,
    rewrite_time_ms, execution_time_ms and num_deletion_vectors_added. A row whose values do not change counts
    as updated too.
    """


def update_rows(
    snapshot: Snapshot,
    updates: Updates | None = None,
    predicate: Expression | str | None = None,
    *,
    new_values: Updates | None = None,
    target_file_size_bytes: int | None = None,
    run: Run = DEFAULT_RUN,
) -> UpdateResult:
    """Assign values to columns of the rows for which a predicate is true. Other rows are not changed.

    All values are computed from the old row. Generated columns are computed again when nothing is assigned to
    them, otherwise the assigned values are checked. When a partition column is assigned, the row moves to
    another partition. After a failed commit the new files are deleted, unless it is not known whether the
    commit landed. With deletion vectors, a compaction at the same time does not conflict: see `moved_rows`.

    Args:
        snapshot: the version that the statement is based on.
        updates: by column, or by the path of a nested field: SQL text of Spark, a tree, or a Python value
            that is not a string.
        predicate: SQL text of Spark or a tree; None stands for every row.
        new_values: Python values by column.
        target_file_size_bytes: the size of new files; the table's size when None.
        run: the surroundings, such as the clock and the commit properties.

    Cost: see `find_rows`. Then all columns of each file with matching rows are read once more. If the table
    enables deletion vectors, the updated rows are written, and one more object unless only whole files are
    removed. Otherwise all rows of these files are written. For a change data feed each updated row is written
    twice more.

    Raises:
        ConfigurationError: nothing is assigned, or a column is assigned twice.
        ExpressionError: the predicate or an assignment is invalid, does not fit the schema, or fails on a
            row; or a value does not fit its column's type.
        SchemaMismatchError: an identity column is assigned.
        ConstraintViolationError: a row would violate a constraint, NOT NULL or a generated column. The error
            shows the row.
        InvalidTableError: the table is append-only, or a file cannot be read.
        UnsupportedTableFeatureError: the table needs an unsupported feature. No file was written.
        ConcurrentModificationError: another writer changed or added matching rows. Nothing was committed.
        CommitStateUnknownError: it is not known whether the commit landed. The written files were kept.
    """

    def attempt(version: Snapshot, attempt_run: Run) -> UpdateResult:
        return _update(version, updates, predicate, new_values, target_file_size_bytes, attempt_run)

    return follow_moved_rows(snapshot, run, attempt)


def _update(
    snapshot: Snapshot,
    updates: Updates | None,
    predicate: Expression | str | None,
    new_values: Updates | None,
    target_file_size_bytes: int | None,
    run: Run,
) -> UpdateResult:
    statement = RowStatement(
        snapshot=snapshot,
        operation="UPDATE",
        verb="update",
        counted="updated",
        target_file_size_bytes=target_file_size_bytes,
        run=run,
    )
    done = statement.already_done()
    if done is not None:
        return UpdateResult(committed=done)
    now_us = run.now_ms() * 1000
    assignments = Assignments(updates, new_values, plan=statement.plan, now_us=now_us)
    pipeline = RowPipeline(statement.plan, now_us=now_us)
    resolved = resolve_predicate(predicate, snapshot.schema)

    def change(found: FoundRows) -> ChangedFiles:
        return _changed(statement, resolved, found, assignments, pipeline)

    result = statement.execute(resolved, change)
    return UpdateResult(committed=result.committed, metrics=result.metrics)


def _changed(
    statement: RowStatement,
    predicate: Expression | None,
    found: FoundRows,
    assignments: Assignments,
    pipeline: RowPipeline,
) -> ChangedFiles:
    snapshot, plan = statement.snapshot, statement.plan
    writes_changes = records_changes(snapshot.protocol, snapshot.metadata)
    copies = not statement.uses_deletion_vectors
    # Copied rows keep their values, and a change data feed contains the old values.
    unread = frozenset[str]() if copies or writes_changes else assignments.unread
    changed_columns = assignments.columns | {column.name for column in plan.generated}

    def write(matches: Sequence[FileMatch]) -> WrittenGroup:
        rows = statement.matched_rows(predicate, alone=len(matches) == len(found.matches), unread=unread)
        updated_rows = 0
        with (
            statement.file_writer() as files,
            ChangeFileWriter(snapshot.store, plan, clock=statement.run.clock) as changes,
        ):
            for match in matches:
                for batch, matching in _batches(rows, match, copies=copies):
                    old = rows_where(batch, matching)
                    if not old.num_rows:
                        files.write(batch)
                        continue
                    new = pipeline.updated_rows(assignments.apply(old))
                    files.write(with_rows(batch, matching, new, columns=changed_columns))
                    updated_rows += new.num_rows
                    if writes_changes:
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
    """The rows of a file to write, with a mask of the matching ones. Other rows only when rows are copied."""
    if copies:
        yield from rows.marked(match)
        return
    for batch in rows.matching(match):
        yield batch, np.ones(batch.num_rows, np.bool_)
