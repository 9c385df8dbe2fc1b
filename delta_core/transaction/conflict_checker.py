"""The conflict rules: may this transaction be ordered after a commit that it did not see?

Each rule is a function with a name. `CONFLICT_RULES` lists all rules in the order in which they are checked.
A rule returns the error to raise when it fires, and None when the two commits are compatible.

The isolation levels differ only in how they treat a concurrent *append*. Under WriteSerializable a blind
append may be ordered after the transaction although its version is lower. So it never conflicts, unless the
transaction also changes the schema that the append relied on. A file action whose `dataChange` is false adds
and removes no rows, so a rearrangement never conflicts with a read. Two commits that remove the same file
always conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from delta_core.actions import AddFile, CommitInfo, Metadata, RemoveFile
from delta_core.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentModificationError,
    ConcurrentTransactionError,
    ConcurrentWriteError,
    MetadataChangedError,
    ProtocolChangedError,
)
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.row_ids import DOMAIN as ROW_IDS
from delta_core.transaction.row_ids import enables_row_tracking
from delta_core.transaction.winning_commit import WinningCommit

RuleFunction = Callable[[CommitFootprint, WinningCommit], ConcurrentModificationError | None]

INERT_PROPERTIES = frozenset(
    {
        "delta.checkpointInterval",
        "delta.deletedFileRetentionDuration",
        "delta.enableExpiredLogCleanup",
        "delta.logRetentionDuration",
        "delta.setTransactionRetentionDuration",
        "delta.targetFileSize",
        "delta.tuneFileSizesForRewrites",
    }
)
"""Properties that do not restrict the contents of data files. Properties outside `delta.` do not either."""


_CLOCK_SKEW_MS = 300_000

VACUUM_START = "VACUUM START"
"""The operation of the commit that a vacuum makes before it deletes files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRule:
    """A conflict rule and its name."""

    name: str
    check: RuleFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleViolation:
    """A rule that fired on a winning commit."""

    rule: str
    winner: int
    error: ConcurrentModificationError


def find_conflict(transaction: CommitFootprint, winner: WinningCommit) -> RuleViolation | None:
    """The first rule that forbids ordering the transaction after the winner, or None.

    No request.

    Args:
        transaction: what the transaction reads and changes.
        winner: the winning commit, which the transaction did not see.
    """
    for rule in CONFLICT_RULES:
        error = rule.check(transaction, winner)
        if error is not None:
            return RuleViolation(rule=rule.name, winner=winner.version, error=error)
    return None


def protocol_changed(
    transaction: CommitFootprint, winner: WinningCommit
) -> ConcurrentModificationError | None:
    """The winner changed the protocol, so the transaction's earlier checks may no longer hold."""
    if winner.protocol is None:
        return None
    return ProtocolChangedError(
        f"The table's protocol changed in {winner.label}.",
        cause="Another writer created the table or changed what a client must support.",
        fix="Reload the table and run the operation again.",
    )


def metadata_changed(
    transaction: CommitFootprint, winner: WinningCommit
) -> ConcurrentModificationError | None:
    """The winner changed the metadata.

    A blind append may follow a change that does not affect its files: the schema and the partitioning are the
    same, and only properties that do not restrict the contents of files differ.
    """
    if winner.metadata is None:
        return None
    if (
        transaction.metadata is None
        and transaction.is_blind_append
        and transaction.base_metadata is not None
        and _same_for_appends(transaction.base_metadata, winner.metadata)
    ):
        return None
    return MetadataChangedError(
        f"The table's metadata changed in {winner.label}.",
        cause="Another writer changed the schema, the partitioning or the table properties.",
        fix="Reload the table and run the operation again.",
    )


def concurrent_append(
    transaction: CommitFootprint, winner: WinningCommit
) -> ConcurrentModificationError | None:
    """The winner added rows that the transaction would have read."""
    if transaction.isolation is IsolationLevel.SNAPSHOT_ISOLATION or transaction.reads.is_empty:
        return None
    if (
        transaction.isolation is IsolationLevel.WRITE_SERIALIZABLE
        and winner.is_blind_append
        and transaction.metadata is None
    ):
        return None
    added = [add for add in winner.adds if add.data_change]
    if not added:
        return None
    matching = None
    if transaction.reads.whole_table:
        matching = added[0]
    else:
        for predicate in transaction.reads.predicates:
            matching = transaction.matcher(added, predicate)
            if matching is not None:
                break
    if matching is None:
        return None
    return ConcurrentAppendError(
        f"Rows were added by {winner.label} to what this operation read.",
        cause=f"The file {matching.path!r} may hold matching rows.",
        fix="Run the operation again, or narrow its predicate to partitions that no other job writes.",
    )


def delete_read(transaction: CommitFootprint, winner: WinningCommit) -> ConcurrentModificationError | None:
    """The winner removed rows that the transaction had read, or a file that the transaction adds again.

    A transaction adds a live file again to change what the log records about it, such as its statistics.
    After the winner's `remove` that would restore deleted rows, so it conflicts at every isolation level.
    """
    added_again = transaction.added_files - transaction.removed_files
    removed_path = next(
        (r.path for r in winner.removes if added_again and canonical_log_path(r.path) in added_again), None
    )
    if removed_path is not None:
        return ConcurrentDeleteReadError(
            f"A file that this operation adds again was removed by {winner.label}.",
            cause=f"The file {removed_path!r} was removed.",
            fix="Run the operation again.",
        )
    reads = transaction.reads
    if transaction.isolation is IsolationLevel.SNAPSHOT_ISOLATION or reads.is_empty:
        return None
    removed = [remove for remove in winner.removes if remove.data_change]
    first = next((r for r in removed if _was_read(transaction, r)), None)
    if first is None:
        return None
    return ConcurrentDeleteReadError(
        f"Files that this operation read were removed by {winner.label}.",
        cause=f"The file {first.path!r} was removed.",
        fix="Run the operation again.",
    )


def delete_delete(transaction: CommitFootprint, winner: WinningCommit) -> ConcurrentModificationError | None:
    """Both commits remove the same file."""
    if not transaction.removed_files:
        return None
    twice = next(
        (r.path for r in winner.removes if canonical_log_path(r.path) in transaction.removed_files), None
    )
    if twice is None:
        return None
    return ConcurrentDeleteDeleteError(
        f"Files that this operation removes were already removed by {winner.label}.",
        cause=f"The file {twice!r} was removed or rewritten by both.",
        fix="Run the operation again.",
    )


def same_application(
    transaction: CommitFootprint, winner: WinningCommit
) -> ConcurrentModificationError | None:
    """Both commits set a version for the same application id."""
    app_id = next((t.app_id for t in winner.transactions if t.app_id in transaction.app_ids), None)
    if app_id is None:
        return None
    return ConcurrentTransactionError(
        f"The application id {app_id!r} was also committed by {winner.label}.",
        cause="Two runs of one job wrote at the same time.",
        fix="Make sure that only one run of the job is active, then run it again.",
    )


def same_domain(transaction: CommitFootprint, winner: WinningCommit) -> ConcurrentModificationError | None:
    """Both commits set the same metadata domain, and no rebase hook of the transaction merges it.

    A restore determines every domain: it stages only those that change, and relies on the others as they
    are. So a winner that set any domain but `delta.rowTracking` conflicts with it.
    """
    domains = winner.domains - {ROW_IDS} if transaction.reuses_files else transaction.domains
    shared = sorted(domains & winner.domains)
    if not shared:
        return None
    return ConcurrentWriteError(
        f"The metadata domain {shared[0]!r} was also changed by {winner.label}.",
        cause="Two writers changed one domain at the same time.",
        fix="Reload the table and run the operation again.",
    )


def unnumbered_rows(
    transaction: CommitFootprint, winner: WinningCommit
) -> ConcurrentModificationError | None:
    """The winner added rows without ids, and the transaction enables row tracking.

    This happens only where the table did not assign row ids before (PROTOCOL.md, "Row Tracking").
    """
    if not enables_row_tracking(transaction.metadata):
        return None
    without_ids = next((add for add in winner.adds if add.base_row_id is None), None)
    if without_ids is None:
        return None
    return ConcurrentAppendError(
        f"Rows without ids were added by {winner.label}, while this operation enabled row tracking.",
        cause=f"The file {without_ids.path!r} has no row ids.",
        fix="Assign row ids to that file, then run the operation again.",
    )


def vacuum_started(transaction: CommitFootprint, winner: WinningCommit) -> ConcurrentModificationError | None:
    """A vacuum began to delete files, perhaps those that the transaction adds.

    At risk are old files that the transaction reuses, and new files that it wrote longer ago than the
    vacuum's retention for files that no version refers to.
    """
    info = winner.commit_info
    if info is None or info.operation != VACUUM_START:
        return None
    if not transaction.reuses_files:
        return _outlived(transaction, winner, info)
    return ConcurrentWriteError(
        f"A vacuum began in {winner.label}, while this operation was about to reuse old files.",
        cause="The vacuum may delete these files.",
        fix="Wait until the vacuum has ended, then run the operation again.",
    )


def _outlived(
    transaction: CommitFootprint, winner: WinningCommit, vacuum: CommitInfo
) -> ConcurrentModificationError | None:
    if transaction.oldest_file_ms is None or vacuum.timestamp_ms is None:
        return None
    retention_ms = _vacuum_retention_ms(transaction, vacuum)
    # Clocks differ, and a file reaches the store later than the writer closed it.
    retention_ms -= min(retention_ms // 10, _CLOCK_SKEW_MS)
    if transaction.oldest_file_ms >= vacuum.timestamp_ms - retention_ms:
        return None
    return ConcurrentWriteError(
        f"A vacuum began in {winner.label}, and files of this operation are older than its retention.",
        cause="A vacuum deletes files that are older than its retention and that no version refers to.",
        fix="Run the operation again, and vacuum with a retention that is longer than any write takes.",
    )


def _vacuum_retention_ms(transaction: CommitFootprint, vacuum: CommitInfo) -> int:
    for key in ("specifiedRetentionMillis", "defaultRetentionMillis"):
        value = str(vacuum.operation_parameters.get(key, ""))
        if value.isascii() and value.isdigit():
            return int(value)
    metadata = transaction.base_metadata
    return TableProperties.of(metadata.configuration if metadata else {}).deleted_file_retention_ms


CONFLICT_RULES: tuple[ConflictRule, ...] = (
    ConflictRule(name="protocol_changed", check=protocol_changed),
    ConflictRule(name="metadata_changed", check=metadata_changed),
    ConflictRule(name="concurrent_append", check=concurrent_append),
    ConflictRule(name="delete_read", check=delete_read),
    ConflictRule(name="delete_delete", check=delete_delete),
    ConflictRule(name="same_application", check=same_application),
    ConflictRule(name="same_domain", check=same_domain),
    ConflictRule(name="unnumbered_rows", check=unnumbered_rows),
    ConflictRule(name="vacuum_started", check=vacuum_started),
)


def _was_read(transaction: CommitFootprint, remove: RemoveFile) -> bool:
    reads = transaction.reads
    if reads.whole_table:
        return True
    if reads.files is not None:
        return canonical_log_path(remove.path) in reads.files
    if remove.partition_values is None:
        return True
    removed_file = AddFile(
        path=remove.path,
        partition_values=remove.partition_values,
        size_bytes=remove.size_bytes or 0,
        modification_time_ms=0,
        stats=remove.stats,
    )
    return any(transaction.matcher([removed_file], predicate) is not None for predicate in reads.predicates)


def _same_for_appends(before: Metadata, after: Metadata) -> bool:
    return (
        before.id == after.id
        and before.schema_string == after.schema_string
        and before.partition_columns == after.partition_columns
        and _restricting(before.configuration) == _restricting(after.configuration)
    )


def _restricting(configuration: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in configuration.items()
        if key.startswith("delta.") and key not in INERT_PROPERTIES
    }
