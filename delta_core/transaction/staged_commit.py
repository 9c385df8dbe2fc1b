"""What a transaction would commit now, and its bytes at a version."""

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
    """Checked actions, how winners are judged, and what is filled in for each version.

    Attributes:
        actions: all but `commitInfo`, without what stampers fill in.
        examination: of the commits that win.
        info: the provenance of an attempt at a version.
        stampers: of the features that the table has; none for most tables, and then only the first line is
            encoded again for another version.
    """

    actions: Sequence[Action]
    examination: ConflictCheck
    info: Callable[[int], CommitInfo]
    rebase_hooks: tuple[RebaseHook, ...] = ()
    _encoded: tuple[Sequence[Action], bytes] | None = None

    def render(self, version: int) -> bytes:
        """The commit's bytes at a version. Each call is another attempt, of another time.

        Raises:
            CommitError: readers would refuse an action.
            DeltaError: what a stamper raises.
        """
        draft = CommitDraft(info=self.info(version), actions=self.actions)
        for rebase_hook in self.rebase_hooks:
            draft = rebase_hook.stamp(draft, version)
        return encode_checked([draft.info]) + self._body(draft.actions)

    def follow(self, winner: WinningCommit) -> None:
        """Note a commit that this one comes after."""
        self.rebase_hooks = tuple(rebase_hook.after(winner) for rebase_hook in self.rebase_hooks)

    def become(self, other: StagedCommit) -> None:
        """Go on with the other's actions; appends that were passed over stay so, and so do the stampers."""
        self.actions, self.info = other.actions, other.info
        self.examination = self.examination.go_on_as(other.examination.transaction)

    def _body(self, actions: Sequence[Action]) -> bytes:
        last = self._encoded
        if last is None or (last[0] is not actions and last[0] != actions):
            self._encoded = last = (actions, encode_checked(actions))
        return last[1]
