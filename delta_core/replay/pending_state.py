"""A version's state to which the latest commits are applied on demand.

A writer that follows its own appends needs the files of few versions, and applying one commit to the columns
costs nearly as much as applying ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_core.actions import SetTransaction
from delta_core.log.commit_reader import CommitData
from delta_core.replay.state import ReplayState
from delta_core.replay.tail import replay_tail

MAX_WAITING_COMMITS = 64
"""With this number of waiting commits they are applied to the state, so that their bytes do not pile up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingState:
    """A state and the later commits that have not been applied to it.

    Attributes:
        base: the state before the waiting commits.
        waiting: the commits, oldest first. They were decoded once before, so applying them does not fail.
    """

    base: ReplayState
    waiting: tuple[CommitData, ...] = ()

    def followed_by(self, commits: Sequence[CommitData]) -> PendingState:
        """The state after later commits, which have been decoded before."""
        waiting = (*self.waiting, *commits)
        extended = PendingState(base=self.base, waiting=waiting)
        return extended.caught_up() if len(waiting) >= MAX_WAITING_COMMITS else extended

    def caught_up(self) -> PendingState:
        """The same state with all waiting commits applied.

        Raises:
            CorruptLogError: a commit is damaged.
        """
        if not self.waiting:
            return self
        return PendingState(base=self.base.apply(replay_tail(self.waiting)))

    @property
    def transactions(self) -> Mapping[str, SetTransaction]:
        """Application transactions by application id. Does not apply file actions."""
        if not self.waiting:
            return self.base.transactions
        return {**self.base.transactions, **replay_tail(self.waiting).transactions}
