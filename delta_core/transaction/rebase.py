"""The parts of a commit that depend on its version and on the winning commits before it.

Most of a commit is known when it is staged. Rebase hooks fill in the rest for each version that is tried.
A rebase hook is a small immutable value. It knows the table's state before the commit, is updated for every
winner, and sets its fields in a draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from delta_core.actions import Action, CommitInfo
from delta_core.transaction.winning_commit import WinningCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDraft:
    """A commit at one version, before it is encoded.

    Attributes:
        info: `commitInfo` with the time of the attempt. It becomes the first line.
        actions: all other actions.
    """

    info: CommitInfo
    actions: Sequence[Action]


class RebaseHook(Protocol):
    """Sets the fields of a commit that one table feature requires. Immutable: `after` returns a new hook."""

    @property
    def domains(self) -> frozenset[str]:
        """Metadata domains that this hook merges: two commits that set one of them are compatible."""
        ...

    def apply(self, draft: CommitDraft, version: int) -> CommitDraft:
        """The draft as it is committed at a version. It has the same actions object when none changes.

        Raises:
            DeltaError: no valid commit is possible at this version.
        """
        ...

    def after(self, winner: WinningCommit) -> RebaseHook:
        """The rebase hook of a commit that follows this winner. Called once for each winner, in order."""
        ...
