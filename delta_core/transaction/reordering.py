"""All the winners over a transaction together: what they say of its place in a serial order.

Ordering it before blind appends that it did not see is allowed until somebody has read them.
Under WriteSerializable a transaction may be ordered before an append whose version is lower. A third
transaction that committed in between may have read the append's rows, so it comes after the append, and has
not seen this one's changes, so it comes before those. No serial order has both; judged one by one, each of
the two winners gets along with the transaction.
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
    """Judges the commits that won over one transaction, in the order of their versions.

    A commit does not say what it read, so one that changes rows and is no blind append counts as having read
    whatever was there.
    """

    transaction: CommitFootprint
    _passed: list[WinningCommit] = field(default_factory=list)
    _moved: set[str] = field(default_factory=set)

    def go_on_as(self, transaction: CommitFootprint) -> ConflictCheck:
        """The same winners so far, and another transaction from here on."""
        return ConflictCheck(transaction=transaction, _passed=self._passed, _moved=self._moved)

    def examine(self, winner: WinningCommit) -> RuleViolation | None:
        """Why the transaction cannot follow this winner, the next one, and those before it, or None."""
        transaction = self.following_rows
        violation = find_conflict(transaction, winner) or self.examine_order(winner)
        if violation is not None:
            return violation
        if transaction.isolation is IsolationLevel.WRITE_SERIALIZABLE and winner.is_blind_append:
            strictly = replace(transaction, isolation=IsolationLevel.SERIALIZABLE)
            if concurrent_append(strictly, winner) is not None:
                self._passed.append(winner)
        read = transaction.reads.files or frozenset()
        if any(not r.data_change and canonical_log_path(r.path) in read for r in winner.removes):
            self._moved |= {canonical_log_path(add.path) for add in winner.adds if not add.data_change}
        return None

    def examine_order(self, winner: WinningCommit) -> RuleViolation | None:
        """Why the order of the transaction, this winner and those before it has no answer, or None."""
        if self._passed and not winner.is_blind_append and _changes_rows(winner):
            return RuleViolation(
                rule=REORDERED_APPEND,
                winner=winner.version,
                error=ConcurrentAppendError(
                    f"Rows were added by {self._passed[0].label} to what this operation read, and "
                    f"{winner.label} may have read them.",
                    cause="So this operation can be ordered neither before the one nor after the other.",
                    fix="Run the operation again, or narrow its predicate to partitions that no other job "
                    "writes.",
                ),
            )
        return None

    @property
    def following_rows(self) -> CommitFootprint:
        """The transaction with the files that it read where winners have moved their rows to.

        Rows that a rearrangement moved are those that were read: who removes them from where they are now
        conflicts as if they had stayed.
        """
        reads = self.transaction.reads
        if not self._moved or reads.files is None:
            return self.transaction
        return replace(self.transaction, reads=replace(reads, files=reads.files | self._moved))


def _changes_rows(winner: WinningCommit) -> bool:
    return any(a.data_change for a in winner.adds) or any(r.data_change for r in winner.removes)
