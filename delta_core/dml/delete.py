"""DELETE: deletes rows that match a predicate, in one commit.

The rows are deleted by deletion vectors when the table enables them, otherwise by copying the remaining rows
to new files. A file without remaining rows is removed (`row_statement`). When rows are copied, a table with a
change data feed gets change data files, because the `add` and `remove` actions would report the copied rows
too. A deletion vector, or the removal of a whole file, shows which rows are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_core.dml.change_files import Change, ChangeFileWriter, records_changes
from delta_core.dml.commit_files import resolve_predicate
from delta_core.dml.find_rows import FileMatch, FoundRows
from delta_core.dml.moved_rows import follow_moved_rows
from delta_core.dml.row_statement import (
    ChangedFiles,
    RowStatement,
    RowStatementResult,
    WrittenGroup,
    uses_deletion_vectors,
    write_groups,
)
from delta_core.expressions.ast import Expression
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot

__all__ = ["DeleteResult", "delete_rows", "uses_deletion_vectors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult(RowStatementResult):
    """The result of a DELETE.

    Its metrics are num_deleted_rows, num_copied_rows, num_added_files, num_removed_files, scan_time_ms,
    rewrite_time_ms, execution_time_ms and num_deletion_vectors_added. `num_deleted_rows` is missing when
    unread files without a row count in their statistics were removed.
    """


def delete_rows(
    snapshot: Snapshot,
    predicate: Expression | str | None = None,
    *,
    target_file_size_bytes: int | None = None,
    run: Run = DEFAULT_RUN,
) -> DeleteResult:
    """Delete the rows for which a predicate is true. Rows for which it is null are kept.

    After a failed commit the new files are deleted, unless it is not known whether the commit landed. With
    deletion vectors, a compaction at the same time does not conflict: see `moved_rows`.

    Args:
        snapshot: the version that the deletion is based on.
        predicate: SQL text of Spark or a tree. None deletes every row without reading a file.
        target_file_size_bytes: the size of files with copied rows; the table's size when None.
        run: the surroundings, such as the clock and the commit properties.

    Cost: see `find_rows`. With deletion vectors one object is written in addition to the commit, or none when
    only whole files are removed. Without them, each file with some matching rows is read once more and its
    remaining rows are written. For a change data feed the deleted rows are then written too, unless only
    whole files are removed.

    Raises:
        ExpressionError: the predicate is invalid, does not fit the schema, or fails on a row.
        InvalidTableError: the table is append-only, or a file cannot be read.
        UnsupportedTableFeatureError: the table needs an unsupported feature. No file was written.
        ConcurrentModificationError: another writer changed or added matching rows. Nothing was committed.
        CommitStateUnknownError: it is not known whether the commit landed. The written files were kept.
    """

    def attempt(version: Snapshot, attempt_run: Run) -> DeleteResult:
        return _delete(version, predicate, target_file_size_bytes, attempt_run)

    return follow_moved_rows(snapshot, run, attempt)


def _delete(
    snapshot: Snapshot, predicate: Expression | str | None, target_file_size_bytes: int | None, run: Run
) -> DeleteResult:
    statement = RowStatement(
        snapshot=snapshot,
        operation="DELETE",
        verb="delete",
        counted="deleted",
        target_file_size_bytes=target_file_size_bytes,
        run=run,
    )
    done = statement.already_done()
    if done is not None:
        return DeleteResult(committed=done)
    resolved = resolve_predicate(predicate, snapshot.schema)
    if statement.uses_deletion_vectors:
        result = statement.execute(resolved, statement.with_deletion_vectors)
    else:
        result = statement.execute(resolved, lambda found: _rewritten(statement, resolved, found))
    return DeleteResult(committed=result.committed, metrics=result.metrics)


def _rewritten(statement: RowStatement, predicate: Expression | None, found: FoundRows) -> ChangedFiles:
    snapshot, plan = statement.snapshot, statement.plan
    copies_rows = any(not match.is_whole for match in found.matches)
    writes_changes = copies_rows and records_changes(snapshot.protocol, snapshot.metadata)

    def write(matches: Sequence[FileMatch]) -> WrittenGroup:
        rows = statement.matched_rows(predicate, alone=len(matches) == len(found.matches))
        with (
            statement.file_writer() as files,
            ChangeFileWriter(snapshot.store, plan, clock=statement.run.clock) as changes,
        ):
            for match in matches:
                if not writes_changes:
                    for kept in rows.remaining(match):
                        files.write(kept)
                elif match.is_whole:
                    for deleted in rows.matching(match):
                        changes.write(deleted.columns, Change.DELETE)
                else:
                    for kept, deleted in rows.both(match):
                        files.write(kept)
                        changes.write(deleted.columns, Change.DELETE)
            return WrittenGroup(written=tuple(files.finish()), changes=changes.finish())

    group = write_groups(snapshot.store, found.matches, write)
    return statement.rewritten(
        found,
        written=group.written,
        changes=group.changes,
        copied_rows=sum(match.num_left for match in found.matches),
    )
