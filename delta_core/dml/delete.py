"""DELETE: rows go by a predicate, in one commit.

By deletion vectors where the table asks for them, else by copying the other rows; a file that loses all of
its rows is removed (`row_statement`). Where rows are copied, a table with a change data feed gets files of
change data, since the log's words about files would tell of all rows; a vector, or a file that goes as a
whole, tells by itself what is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.dml.change_files import Change, ChangeFileWriter, records_changes
from delta_core.dml.commit_files import resolve_predicate
from delta_core.dml.file_groups import WrittenGroup, write_groups
from delta_core.dml.find_rows import FileMatch, FoundRows
from delta_core.dml.row_statement import ChangedFiles, RowStatement, RowStatementResult, uses_deletion_vectors
from delta_core.expressions.ast import Expression
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver

__all__ = ["DeleteResult", "delete_rows", "uses_deletion_vectors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult(RowStatementResult):
    """What a DELETE did.

    Its metrics are num_deleted_rows, num_copied_rows, num_added_files, num_removed_files, scan_time_ms,
    rewrite_time_ms, execution_time_ms and num_deletion_vectors_added. `num_deleted_rows` is left out where
    files went unread whose statistics do not say how many rows they have.
    """


def delete_rows(
    snapshot: Snapshot,
    predicate: Expression | str | None = None,
    *,
    allowed_roots: Sequence[LogStore] = (),
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    target_file_size_bytes: int | None = None,
    observer: TransactionObserver = NULL_OBSERVER,
    clock: Clock = SYSTEM_CLOCK,
) -> DeleteResult:
    """Delete the rows for which a predicate is true; where it is null, a row stays.

    When the commit does not happen, the new files are deleted unless it cannot be told whether it happened.

    Args:
        snapshot: the state that the deletion is based on.
        predicate: Spark SQL text or a tree; None is every row, and no file is read for that.
        allowed_roots: see `Scan`.
        properties: provenance, idempotency key and limits of the commit.
        target_file_size_bytes: of files with copied rows; the table's when None.
        observer: sees the commit's phases.
        clock: where time comes from.

    Cost: see `find_rows`. With vectors one object is written besides the commit, or none where all files go
    as a whole; without, each file that matches in part is read once more and its rest written. A change data
    feed without vectors asks for the deleted rows, too, unless all files go as a whole.

    Raises:
        ExpressionError: the predicate is invalid, does not fit the schema, or fails on a row.
        InvalidTableError: the table is append-only; or a file cannot be read.
        UnsupportedTableFeatureError: the table needs what is not written; no file was.
        ConcurrentModificationError: another writer has changed or added such rows; nothing was written.
        CommitStateUnknownError: the store never said whether the commit landed; files were kept.
    """
    statement = RowStatement(
        snapshot=snapshot,
        operation="DELETE",
        verb="delete",
        counted="deleted",
        allowed_roots=allowed_roots,
        properties=properties,
        target_file_size_bytes=target_file_size_bytes,
        observer=observer,
        clock=clock,
    )
    done = statement.already_done()
    if done is not None:
        return DeleteResult(committed=done)
    resolved = resolve_predicate(predicate, snapshot.schema)
    if statement.uses_deletion_vectors:
        result = statement.run(resolved, statement.with_deletion_vectors)
    else:
        result = statement.run(resolved, lambda found: _rewritten(statement, resolved, found))
    return DeleteResult(committed=result.committed, metrics=result.metrics)


def _rewritten(statement: RowStatement, predicate: Expression | None, found: FoundRows) -> ChangedFiles:
    snapshot, plan = statement.snapshot, statement.plan
    partly = any(not match.is_whole for match in found.matches)
    tells = partly and records_changes(snapshot.protocol, snapshot.metadata)

    def write(matches: Sequence[FileMatch]) -> WrittenGroup:
        rows = statement.matched_rows(predicate, alone=len(matches) == len(found.matches))
        with (
            statement.file_writer() as files,
            ChangeFileWriter(snapshot.store, plan, clock=statement.clock) as changes,
        ):
            for match in matches:
                if not tells:
                    for left in rows.remaining(match):
                        files.write(left)
                elif match.is_whole:
                    for gone in rows.matching(match):
                        changes.write(gone.columns, Change.DELETE)
                else:
                    for left, gone in rows.both(match):
                        files.write(left)
                        changes.write(gone.columns, Change.DELETE)
            return WrittenGroup(written=tuple(files.finish()), changes=changes.finish())

    group = write_groups(snapshot.store, found.matches, write)
    return statement.rewritten(
        found,
        written=group.written,
        changes=group.changes,
        copied_rows=sum(match.num_left for match in found.matches),
    )
