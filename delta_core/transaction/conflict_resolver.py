"""Resolvers settle conflicts by rows. The conflict rules compare only files.

Two commits that delete different rows of one file by deletion vectors conflict by file but not by row: their
deletion vectors can be merged. A feature that can merge changes gives the transaction a resolver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from delta_core.actions import Action
from delta_core.transaction.commit_result import CommitResult
from delta_core.transaction.conflict_checker import RuleViolation
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.winning_commit import WinningCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How a transaction can follow a winner although a rule forbade it.

    Attributes:
        actions: the actions to commit instead, without `commitInfo`. They have the same effect on the rows
            that the winner did not change.
        rest: the winner without its settled actions. The rules check it again. A resolver never drops an
            action that it has not examined.
        counts: changes of operation metrics by name. They are added to the metrics that were set.
    """

    actions: Sequence[Action]
    rest: WinningCommit
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)


class ConflictResolver(Protocol):
    """Settles conflicts. It is called once for each winner and each rule that fires on it.

    It is not called for conflicts about the order of three transactions (`reordering`).
    """

    def resolve(
        self,
        violation: RuleViolation,
        winner: WinningCommit,
        actions: Sequence[Action],
        *,
        transaction: CommitFootprint,
    ) -> Resolution | None:
        """Return the actions to commit after the winner; None lets the conflict stand.

        Args:
            violation: the rule that fired.
            winner: the winning commit, without the actions that were settled before.
            actions: the actions that the transaction would commit, without `commitInfo`.
            transaction: what the transaction reads and changes. Its files include those to which winners
                have moved rows that it read.

        The caller checks the new actions for contradictions like staged ones, and applies every rule to them
        and the rest of this winner and the winners that follow.
        """
        ...


class FileWritingResolver(ConflictResolver, Protocol):
    """A resolver that writes files, such as deletion vectors."""

    def discard(self, result: CommitResult, owned: OwnedFiles) -> None:
        """Delete the files that no commit needs, once the transaction has ended.

        Args:
            result: the result of the transaction.
            owned: the files that the operation itself has written.
        """
        ...
