"""A version's state that may not know the last commits yet: they are put into it when it is looked at.

A writer who follows its own appends never asks for the files of most versions, and putting one commit into
the columns costs nearly as much as putting ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_core.actions import SetTransaction
from delta_core.log.commit_reader import CommitData
from delta_core.replay.state import ReplayState
from delta_core.replay.tail import replay_tail

MAX_WAITING_COMMITS = 64
"""From so many on they are put into the state, so that their bytes do not pile up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingState:
    """The state before some commits, and those commits.

    Attributes:
        waiting: commits that were decoded once, so that putting them into the state does not fail.
    """

    base: ReplayState
    waiting: tuple[CommitData, ...] = ()

    def followed_by(self, commits: Sequence[CommitData]) -> PendingState:
        """The state after some more commits, which have been decoded before."""
        waiting = (*self.waiting, *commits)
        longer = PendingState(base=self.base, waiting=waiting)
        return longer.caught_up() if len(waiting) >= MAX_WAITING_COMMITS else longer

    def caught_up(self) -> PendingState:
        """The same state with no commit waiting.

        Raises:
            CorruptLogError: a commit is damaged.
        """
        if not self.waiting:
            return self
        return PendingState(base=self.base.apply(replay_tail(self.waiting)))

    @property
    def transactions(self) -> Mapping[str, SetTransaction]:
        """Application transactions by application id; looks at no file."""
        if not self.waiting:
            return self.base.transactions
        return {**self.base.transactions, **replay_tail(self.waiting).transactions}
