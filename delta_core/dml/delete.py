"""DELETE: rows go by a predicate, in one commit.

Where the table asks for deletion vectors (`delta.enableDeletionVectors`) a file that loses some of its rows
stays and gets a vector (PROTOCOL.md, "Deletion Vectors"); elsewhere its other rows are copied to new files,
with the row ids that they have. A file that loses all of them is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from delta_core.actions import AddFile, RemoveFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.parquet_writer import FileOptions, write_rows_to_files
from delta_core.data.write_plan import WritePlan
from delta_core.deletion_vectors.file_update import removed, with_new_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.dml.commit_files import resolve_predicate
from delta_core.dml.find_rows import FoundRows, find_rows, remaining_rows
from delta_core.dml.post_commit import commit_and_checkpoint
from delta_core.errors import DeltaError, InvalidTableError
from delta_core.expressions.ast import Expression
from delta_core.expressions.render import to_spark_sql
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.table_features.surface import Surface
from delta_core.table_features.table_properties import parse_bool
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
)
from delta_core.transaction.commit_result import AlreadyApplied, Committed, Rejected, raise_for_result
from delta_core.transaction.idempotency import already_applied
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction
from delta_core.transaction.vector_resolver import VectorResolver

_VECTORS_FEATURE = "deletionVectors"
_VECTORS_PROPERTY = "delta.enableDeletionVectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult:
    """What a DELETE did.

    Attributes:
        committed: the commit; None when no row matched and there was no idempotency key to note.
        metrics: named as deltalake names them (num_deleted_rows, num_copied_rows, num_added_files,
            num_removed_files, scan_time_ms, rewrite_time_ms, execution_time_ms), and
            num_deletion_vectors_added. `num_deleted_rows` is left out where files went unread whose
            statistics do not say how many rows they have.
    """

    committed: Committed | None
    metrics: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def version(self) -> int | None:
        """The version that was committed; None when none was."""
        return None if self.committed is None or self.committed.already_applied else self.committed.version


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """The actions of a DELETE, and what it has written for them."""

    removes: tuple[RemoveFile, ...] = ()
    adds: tuple[AddFile, ...] = ()
    written: tuple[AddFile, ...] = ()
    vectors: int = 0
    owned: OwnedFiles


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

    Cost: see `find_rows`. With vectors one object is written besides the commit, or none where all are small
    enough for the log; without, each file that matches in part is read once more and its rest written.

    Raises:
        ExpressionError: the predicate is invalid, does not fit the schema, or fails on a row.
        InvalidTableError: the table is append-only; or a file cannot be read.
        UnsupportedTableFeatureError: the table needs what is not written; no file was.
        ConcurrentModificationError: another writer has changed or added such rows; nothing was written.
        CommitStateUnknownError: the store never said whether the commit landed; files were kept.
    """
    require_commit_properties(properties)
    applied = already_applied(snapshot, properties.txn)
    if applied is not None:
        done = AlreadyApplied(version=snapshot.version, attempts=0, snapshot=snapshot, transaction=applied)
        return DeleteResult(committed=done)
    snapshot.require_writable(surface=Surface.ARROW_ROWS, operation="delete rows")
    if snapshot.properties.append_only:
        raise InvalidTableError(
            "The table is append-only, so DELETE cannot take rows away.",
            cause="The table property delta.appendOnly is true.",
            fix="Leave the rows, or set delta.appendOnly to false first.",
        )
    started = monotonic()
    resolved = resolve_predicate(predicate, snapshot.schema)
    found = find_rows(snapshot, resolved, allowed_roots=allowed_roots)
    scanned = monotonic()
    if not found.matches and properties.txn is None:
        times = {"scan_time_ms": _ms(scanned - started), "rewrite_time_ms": 0}
        return DeleteResult(committed=None, metrics=_metrics(found, None) | times | _total(started))
    resolver = _resolver(snapshot, allowed_roots=allowed_roots, clock=clock)
    transaction = Transaction.begin(
        snapshot,
        operation="DELETE",
        surface=Surface.ARROW_ROWS,
        operation_parameters={"predicate": [] if resolved is None else [to_spark_sql(resolved)]},
        properties=properties,
        observer=observer,
        clock=clock,
        resolver=resolver,
    )
    changes = _changes(
        snapshot,
        found,
        allowed_roots=allowed_roots,
        target_file_size_bytes=target_file_size_bytes,
        clock=clock,
    )
    times = {"scan_time_ms": _ms(scanned - started), "rewrite_time_ms": _ms(monotonic() - scanned)}
    metrics = _metrics(found, changes) | times
    try:
        transaction.read_predicate(resolved).read_files(found.read_paths)
        transaction.add(*changes.removes, *changes.adds).preserve_rows(True)
        transaction.set_metrics(_history(found, changes, metrics))
        transaction.prepare()
    except DeltaError as error:
        # Nothing was sent to the log yet, so nothing there can name the files.
        changes.owned.discard(Rejected(error=error))
        raise
    outcome = commit_and_checkpoint(transaction)
    if resolver is None:
        changes.owned.discard(outcome)
    else:
        resolver.discard(outcome, changes.owned)
    committed = raise_for_result(outcome)
    return DeleteResult(committed=committed, metrics=metrics | _counted(committed, metrics) | _total(started))


def writes_vectors(snapshot: Snapshot) -> bool:
    """Whether rows of the table go by deletion vectors: it has the feature, and asks for them."""
    if _VECTORS_FEATURE not in (snapshot.protocol.writer_features or ()):
        return False
    text = snapshot.metadata.configuration.get(_VECTORS_PROPERTY, "false")
    try:
        return parse_bool(text)
    except ValueError:
        return False


def _resolver(
    snapshot: Snapshot, *, allowed_roots: Sequence[LogStore], clock: Clock
) -> VectorResolver | None:
    """What joins the vectors of deletions at the same time; None where rows are copied instead."""
    if not writes_vectors(snapshot):
        return None
    return VectorResolver(
        snapshot.store,
        properties=snapshot.properties,
        access=DataAccess(allowed_roots=tuple(allowed_roots), clock=clock),
        clock=clock,
    )


def _counted(committed: Committed, metrics: Mapping[str, int]) -> dict[str, int]:
    """The counts as they were committed: another writer may have taken some of the rows first."""
    names = {
        "numDeletedRows": "num_deleted_rows",
        "numRemovedFiles": "num_removed_files",
        "numDeletionVectorsAdded": "num_deletion_vectors_added",
    }
    found = committed.operation_metrics
    return {ours: int(found[theirs]) for theirs, ours in names.items() if theirs in found and ours in metrics}


def _changes(
    snapshot: Snapshot,
    found: FoundRows,
    *,
    allowed_roots: Sequence[LogStore],
    target_file_size_bytes: int | None,
    clock: Clock,
) -> _Changes:
    now_ms = clock.now_ms()
    owned = OwnedFiles(store=snapshot.store)
    if not writes_vectors(snapshot):
        written = write_rows_to_files(
            snapshot.store,
            remaining_rows(snapshot, found.matches, allowed_roots=allowed_roots),
            plan=WritePlan.of(snapshot.protocol, snapshot.metadata),
            options=FileOptions(target_file_size_bytes=target_file_size_bytes),
            keep_row_ids=True,
            clock=clock,
        )
        return _Changes(
            removes=tuple(removed(match.file, deletion_timestamp_ms=now_ms) for match in found.matches),
            adds=tuple(written),
            written=tuple(written),
            owned=owned.with_data(written),
        )
    partly = [(match, match.rows) for match in found.matches if not match.is_whole and match.rows is not None]
    vectors = write_deletion_vectors(
        snapshot.store, (rows.positions for _, rows in partly), properties=snapshot.properties
    )
    owned = owned.with_vectors(vectors.descriptors)
    removes = [removed(match.file, deletion_timestamp_ms=now_ms) for match in found.matches if match.is_whole]
    adds = []
    try:
        for (match, rows), vector in zip(partly, vectors.descriptors, strict=True):
            update = with_new_vector(
                match.file, vector, deletion_timestamp_ms=now_ms, num_records=rows.num_records
            )
            removes.append(update.remove)
            if update.add is not None:
                adds.append(update.add)
    except DeltaError as error:
        owned.discard(Rejected(error=error))
        raise
    return _Changes(removes=tuple(removes), adds=tuple(adds), vectors=len(adds), owned=owned)


def _metrics(found: FoundRows, changes: _Changes | None) -> dict[str, int]:
    """What was counted, by deltalake's names: a file that gets a vector is neither added nor removed."""
    vectors = 0 if changes is None else changes.vectors
    written = () if changes is None else changes.written
    counts = {
        "num_added_files": len(written),
        "num_removed_files": len(found.matches) - vectors,
        "num_copied_rows": sum(match.num_left for match in found.matches) if written else 0,
        "num_deletion_vectors_added": vectors,
    }
    deleted = _sum([match.num_matching for match in found.matches])
    return counts if deleted is None else {"num_deleted_rows": deleted, **counts}


def _history(found: FoundRows, changes: _Changes, metrics: Mapping[str, int]) -> dict[str, Any]:
    """The same by delta-spark's names."""
    gone = [match for match in found.matches if match.is_whole or not changes.vectors]
    had_vectors = sum(match.file.deletion_vector is not None for match in found.matches)
    return {
        "numRemovedFiles": metrics["num_removed_files"],
        "numAddedFiles": metrics["num_added_files"],
        "numRemovedBytes": sum(match.file.size_bytes for match in gone),
        "numAddedBytes": sum(file.size_bytes for file in changes.written),
        "numDeletedRows": metrics.get("num_deleted_rows"),
        "numCopiedRows": metrics["num_copied_rows"],
        "numDeletionVectorsAdded": changes.vectors,
        "numDeletionVectorsRemoved": had_vectors,
        "scanTimeMs": metrics["scan_time_ms"],
        "rewriteTimeMs": metrics["rewrite_time_ms"],
        "executionTimeMs": metrics["scan_time_ms"] + metrics["rewrite_time_ms"],
    }


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _total(started: float) -> dict[str, int]:
    return {"execution_time_ms": _ms(monotonic() - started)}


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
