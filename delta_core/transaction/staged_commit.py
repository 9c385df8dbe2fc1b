"""The actions that a transaction will commit, and their bytes at a version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta_core.actions import Action, CommitInfo
from delta_core.actions.checked_commit import encode_checked
from delta_core.transaction.rebase import CommitDraft, RebaseHook
from delta_core.transaction.reordering import ConflictCheck
from delta_core.transaction.winning_commit import WinningCommit


@dataclass(slots=True, kw_only=True)
class StagedCommit:
    """Checked actions, the conflict check, and the hooks that adapt the commit to each version.

    Attributes:
        actions: all actions except `commitInfo`, without the fields that rebase hooks set.
        examination: the conflict check of the winning commits.
        info: returns the `commitInfo` of an attempt at a version.
        rebase_hooks: the hooks of the table's features. Most tables have none. Then only the first line is
            encoded again for another version.
    """

    actions: Sequence[Action]
    examination: ConflictCheck
    info: Callable[[int], CommitInfo]
    rebase_hooks: tuple[RebaseHook, ...] = ()
    _encoded: tuple[Sequence[Action], bytes] | None = None

    def render(self, version: int) -> bytes:
        """The commit's bytes at a version. Each call is a new attempt with its own time.

        Raises:
            CommitError: readers would refuse an action.
            DeltaError: an error of a rebase hook.
        """
        draft = CommitDraft(info=self.info(version), actions=self.actions)
        for rebase_hook in self.rebase_hooks:
            draft = rebase_hook.apply(draft, version)
        return encode_checked([draft.info]) + self._body(draft.actions)

    def follow(self, winner: WinningCommit) -> None:
        """Adapt the rebase hooks to a winning commit that this commit follows."""
        self.rebase_hooks = tuple(rebase_hook.after(winner) for rebase_hook in self.rebase_hooks)

    def replace_actions(self, other: StagedCommit) -> None:
        """Continue with the actions of `other`. The rebase hooks and the winners checked so far are kept."""
        self.actions, self.info = other.actions, other.info
        self.examination = self.examination.with_transaction(other.examination.transaction)

    def _body(self, actions: Sequence[Action]) -> bytes:
        last = self._encoded
        if last is None or (last[0] is not actions and last[0] != actions):
            self._encoded = last = (actions, encode_checked(actions))
        return last[1]
