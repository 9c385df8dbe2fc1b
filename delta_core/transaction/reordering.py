"""Ordering a transaction before blind appends that it did not see: allowed until somebody has read them.

Under WriteSerializable a transaction may be ordered before an append whose version is lower. A third
transaction that committed in between may have read the append's rows, so it comes after the append, and has
not seen this one's changes, so it comes before those. No serial order has both; judged one by one, each of
the two winners gets along with the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from delta_core.errors import ConcurrentAppendError
from delta_core.transaction.conflict_checker import RuleViolation, concurrent_append, find_conflict
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import TransactionFootprint
from delta_core.transaction.winning_commit import WinningCommit

REORDERED_APPEND = "reordered_append"


@dataclass(slots=True, kw_only=True)
class WinnerExamination:
    """Judges the commits that won over one transaction, in the order of their versions.

    A commit does not say what it read, so one that changes rows and is no blind append counts as having read
    whatever was there.
    """

    transaction: TransactionFootprint
    _passed: list[WinningCommit] = field(default_factory=list)

    def go_on_as(self, transaction: TransactionFootprint) -> WinnerExamination:
        """The same winners so far, and another transaction from here on."""
        return WinnerExamination(transaction=transaction, _passed=self._passed)

    def examine(self, winner: WinningCommit) -> RuleViolation | None:
        """Why the transaction cannot follow this winner and those before it, or None."""
        violation = find_conflict(self.transaction, winner)
        if violation is not None or self.transaction.isolation is not IsolationLevel.WRITE_SERIALIZABLE:
            return violation
        if winner.is_blind_append:
            strictly = replace(self.transaction, isolation=IsolationLevel.SERIALIZABLE)
            if concurrent_append(strictly, winner) is not None:
                self._passed.append(winner)
            return None
        return self.examine_order(winner)

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


def _changes_rows(winner: WinningCommit) -> bool:
    return any(a.data_change for a in winner.adds) or any(r.data_change for r in winner.removes)
