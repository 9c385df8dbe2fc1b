"""Checks whether a transaction has a place in a serial order with all of its winners together.

Under WriteSerializable a transaction may be ordered before a blind append that it did not see, although the
append's version is lower. That holds only until another transaction has read the append's rows. Such a
transaction, committed after the append, must be ordered after the append. It has not seen the changes of this
transaction, so it must also be ordered before them. No serial order satisfies both, although each of the two
winners alone is compatible with the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from delta_core.errors import ConcurrentAppendError
from delta_core.storage.uri import canonical_log_path
from delta_core.transaction.conflict_checker import RuleViolation, concurrent_append, find_conflict
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.winning_commit import WinningCommit

REORDERED_APPEND = "reordered_append"


@dataclass(slots=True, kw_only=True)
class ConflictCheck:
    """Checks the winners of one transaction for conflicts, in the order of their versions.

    A commit does not record what it read. So a commit that changes rows and is not a blind append counts as
    having read every row of the version before it.
    """

    transaction: CommitFootprint
    _passed: list[WinningCommit] = field(default_factory=list)
    _moved: set[str] = field(default_factory=set)

    def with_transaction(self, transaction: CommitFootprint) -> ConflictCheck:
        """A copy of this check for `transaction`, which keeps the winners that were examined already."""
        return ConflictCheck(transaction=transaction, _passed=self._passed, _moved=self._moved)

    def examine(self, winner: WinningCommit) -> RuleViolation | None:
        """The rule by which the transaction conflicts with this winner or an earlier one.

        None if the transaction may be committed after all of them.

        Call it for each winner, in the order of the versions.
        """
        transaction = self.with_moved_files
        violation = find_conflict(transaction, winner) or self.examine_order(winner)
        if violation is not None:
            return violation
        if transaction.isolation is IsolationLevel.WRITE_SERIALIZABLE and winner.is_blind_append:
            serializable = replace(transaction, isolation=IsolationLevel.SERIALIZABLE)
            if concurrent_append(serializable, winner) is not None:
                self._passed.append(winner)
        read = transaction.reads.files or frozenset()
        if any(not r.data_change and canonical_log_path(r.path) in read for r in winner.removes):
            self._moved |= {canonical_log_path(add.path) for add in winner.adds if not add.data_change}
        return None

    def examine_order(self, winner: WinningCommit) -> RuleViolation | None:
        """The violation when the transaction and its winners up to this one have no serial order, or None."""
        if self._passed and not winner.is_blind_append and _changes_rows(winner):
            return RuleViolation(
                rule=REORDERED_APPEND,
                winner=winner.version,
                error=ConcurrentAppendError(
                    f"Rows were added by {self._passed[0].label} to what this operation read, and "
                    f"{winner.label} may have read them.",
                    cause=f"This operation would have to be ordered before {self._passed[0].label} and after "
                    f"{winner.label}, which is impossible.",
                    fix="Run the operation again, or narrow its predicate to partitions that no other job "
                    "writes.",
                ),
            )
        return None

    @property
    def with_moved_files(self) -> CommitFootprint:
        """The transaction, with the files to which winners moved rows that it read added to its files.

        A winner that removes rows from a file to which they were moved conflicts as if they had not been
        moved.
        """
        reads = self.transaction.reads
        if not self._moved or reads.files is None:
            return self.transaction
        return replace(self.transaction, reads=replace(reads, files=reads.files | self._moved))


def _changes_rows(winner: WinningCommit) -> bool:
    return any(a.data_change for a in winner.adds) or any(r.data_change for r in winner.removes)
