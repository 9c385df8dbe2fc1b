"""A commit's bytes: encoded once, but for what depends on the version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from delta_core.actions import Action, AddFile, CommitInfo
from delta_core.actions.json_codec import decode_commit
from delta_core.errors import CommitError, StorageError
from delta_core.transaction import staged_commit
from delta_core.transaction.commit_result import Committed, Rejected
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint, ReadSet
from delta_core.transaction.rebase import CommitDraft
from delta_core.transaction.reordering import ConflictCheck
from delta_core.transaction.staged_commit import StagedCommit
from delta_core.transaction.winning_commit import WinningCommit
from tests.unit.transaction.commit_harness import Harness, body

FILES = [AddFile(path=f"f{number}", size_bytes=1, modification_time_ms=0) for number in range(3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Puts the version tried and the last winner into each file."""

    winner: int = 0
    every: int = 1

    @property
    def domains(self) -> frozenset[str]:
        return frozenset({"versions"})

    def apply(self, draft: CommitDraft, version: int) -> CommitDraft:
        number = version // self.every
        changed = [
            replace(a, default_row_commit_version=number, base_row_id=self.winner)
            for a in draft.actions
            if isinstance(a, AddFile)
        ]
        return CommitDraft(info=replace(draft.info, user_metadata=str(version)), actions=changed)

    def after(self, winner: WinningCommit) -> Versions:
        return replace(self, winner=winner.version)


def staged(*rebase_hooks: Any, actions: Sequence[Action] = FILES) -> StagedCommit:
    footprint = CommitFootprint.of(
        actions,
        reads=ReadSet(),
        isolation=IsolationLevel.SERIALIZABLE,
        base_metadata=None,
        matcher=lambda files, predicate: None,
    )
    return StagedCommit(
        actions=actions,
        examination=ConflictCheck(transaction=footprint),
        info=lambda version: CommitInfo(read_version=version - 1),
        rebase_hooks=rebase_hooks,
    )


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many actions each encoding had."""
    counts: list[int] = []
    real = staged_commit.encode_checked

    def encode(actions: Sequence[Action]) -> bytes:
        counts.append(len(actions))
        return real(actions)

    monkeypatch.setattr(staged_commit, "encode_checked", encode)
    return counts


def test_without_hooks_the_actions_are_encoded_once(encoded: list[int]) -> None:
    commit = staged()
    bodies = {version: commit.render(version) for version in (1, 1, 2, 7)}
    assert sorted(encoded) == [1, 1, 1, 1, 3]
    assert [a.read_version for a in decode_commit(bodies[7], path="x") if isinstance(a, CommitInfo)] == [6]


def test_changed_actions_are_encoded_again_only_when_they_differ(encoded: list[int]) -> None:
    commit = staged(Versions(every=10))
    for version in (1, 2, 11):
        commit.render(version)
    assert encoded.count(3) == 2


def test_rebase_hooks_learn_of_winners_and_outlive_other_actions() -> None:
    commit = staged(Versions())
    for version in (1, 2):
        commit.follow(WinningCommit.of(version, []))
    commit.replace_actions(staged(actions=FILES[:1]))
    info, *adds = decode_commit(commit.render(3), path="x")
    assert isinstance(info, CommitInfo)
    assert info.user_metadata == "3"
    assert adds == [replace(FILES[0], default_row_commit_version=3, base_row_id=2)]


@pytest.mark.parametrize("error", [CommitError("no"), StorageError("busy")])
def test_what_cannot_be_rendered_after_a_loss_is_rejected(harness: Harness, error: Exception) -> None:
    """The version before belongs to another, so nothing of this commit can land."""

    def render(version: int) -> bytes:
        if version == 2:
            raise error
        return body("mine", version)

    harness.other_commits(1)
    result = harness.run(render=render)
    assert isinstance(result, Rejected)
    assert result.error is error
    assert not result.files_referenced
    assert harness.versions_of_mine() == []


def test_a_version_is_rendered_once(harness: Harness) -> None:
    asked: list[int] = []

    def render(version: int) -> bytes:
        asked.append(version)
        return body("mine", version)

    harness.other_commits(1)
    harness.other_commits(2)
    assert isinstance(harness.run(render=render), Committed)
    assert asked == [1, 3]
