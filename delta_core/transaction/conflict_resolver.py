"""What can settle a conflict by rows where the rules, which see files, cannot.

Two commits that delete different rows of one file by deletion vectors conflict by file and not by row: the
vectors can be joined. Features that can do such things give the transaction a resolver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from delta_core.actions import Action
from delta_core.transaction.conflict_checker import RuleViolation
from delta_core.transaction.winning_commit import WinningCommit


class ConflictResolver(Protocol):
    """Asked once for each winner and each rule that forbids the transaction to follow it.

    Not where the order of three transactions is what forbids it (`reordering`).
    """

    def resolve(
        self, violation: RuleViolation, winner: WinningCommit, actions: Sequence[Action]
    ) -> Sequence[Action] | None:
        """What to commit instead, after the winner; None lets the conflict stand.

        Args:
            violation: the rule that fired.
            winner: the commit that won.
            actions: what the transaction would commit, without `commitInfo`.

        The new actions must mean the same to the rows that the winner did not touch: they are checked for
        contradictions as staged ones are, against this winner by the other rules, and against those that
        follow by all.
        """
        ...
