"""What can settle a conflict by rows where the rules, which see files, cannot.

Two commits that delete different rows of one file by deletion vectors conflict by file and not by row: the
vectors can be joined. Features that can do such things give the transaction a resolver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from delta_core.actions import Action
from delta_core.transaction.conflict_checker import RuleViolation
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.winning_commit import WinningCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How a transaction follows a winner that the rules forbade it to follow.

    Attributes:
        actions: what to commit instead, without `commitInfo`; they mean the same to the rows that the winner
            did not touch.
        rest: the winner without what is settled; the rules judge it again. A resolver never leaves out what
            it has not looked at.
        counts: what becomes of operation metrics that count, by name: added to those that were set.
    """

    actions: Sequence[Action]
    rest: WinningCommit
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)


class ConflictResolver(Protocol):
    """Asked once for each winner and each rule that forbids the transaction to follow it.

    Not where the order of three transactions is what forbids it (`reordering`).
    """

    def resolve(
        self,
        violation: RuleViolation,
        winner: WinningCommit,
        actions: Sequence[Action],
        *,
        transaction: CommitFootprint,
    ) -> Resolution | None:
        """What to commit instead, after the winner; None lets the conflict stand.

        Args:
            violation: the rule that fired.
            winner: the commit that won, without what was settled of it before.
            actions: what the transaction would commit, without `commitInfo`.
            transaction: what it read and changes, its files where winners have moved their rows to.

        The new actions are checked for contradictions as staged ones are, against the rest of this winner by
        every rule, and against those that follow.
        """
        ...
