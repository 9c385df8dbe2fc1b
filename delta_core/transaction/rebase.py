"""What of a commit depends on the version that it becomes, and on the commits that won before it.

Most of a commit is known when it is staged. The rest is filled in for each version that is tried, by
stampers: small values that know what the table held before, learn of every winner, and put their fields
into a draft.
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
        info: its provenance, with the time of the attempt; it becomes the first line.
        actions: everything else.
    """

    info: CommitInfo
    actions: Sequence[Action]


class RebaseHook(Protocol):
    """Fills in what one table feature asks for. Immutable: winners make another one."""

    @property
    def domains(self) -> frozenset[str]:
        """Metadata domains that this writes itself: two commits that set one get along."""
        ...

    def stamp(self, draft: CommitDraft, version: int) -> CommitDraft:
        """The draft as it is committed at a version; the same actions object where none changes.

        Raises:
            DeltaError: nothing right can be committed at this version.
        """
        ...

    def after(self, winner: WinningCommit) -> RebaseHook:
        """The stamper of a commit that follows this winner, too; told of each once, in order."""
        ...
