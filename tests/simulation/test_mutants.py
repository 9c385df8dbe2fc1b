"""The real core with one thing taken out of it: each of these the judge must find, or it proves little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest

from delta_core.actions.json_codec import decode_commit
from delta_core.errors import AmbiguousWriteError, StorePermissionError
from delta_core.snapshot import snapshot as snapshot_module
from delta_core.snapshot.monotonic_versions import MonotonicVersions
from delta_core.transaction import committer as committer_module
from delta_core.transaction import conflict_checker
from delta_core.transaction import transaction as transaction_module
from delta_core.transaction.commit_result import Committed
from delta_core.transaction.committer import Committer
from delta_core.transaction.log_tail_guard import LogTailGuard
from delta_core.transaction.staged_commit import StagedCommit
from delta_core.transaction.winning_commit import WinningCommit
from tests.simulation.faults import Faults
from tests.simulation.history import draw_plan, stamped
from tests.simulation.simulation import run_plan
from tests.simulation.store import SimulatedStore
from tests.support.soak import SEED
from tests.support.writable_features import let_write

pytestmark = pytest.mark.slow

SEARCHED = 400
SLEEPY = Faults(held_commit=0.2)
LAGGING = Faults(weak=True, stale_listing=0.3, negative_cache=0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """What is taken out, and what the judge says of it.

    Attributes:
        sign: part of the violation that gives it away.
        is_long: the histories to search; None takes them as they come.
        faults: likewise.
    """

    name: str
    apply: Callable[[], AbstractContextManager[Any]]
    sign: str
    is_long: bool | None = None
    faults: Faults | None = None


@contextmanager
def own_commit_is_anothers() -> Iterator[None]:
    real = Committer._owner

    def mutated(self: Committer, version: int, data: bytes) -> Any:
        found = real(self, version, data)
        if not isinstance(found, Committed):
            return found
        return committer_module._Lost(winner=WinningCommit.of(version, decode_commit(data, path="own")))

    with mock.patch.object(Committer, "_owner", mutated):
        yield


@contextmanager
def keys_are_ignored() -> Iterator[None]:
    with (
        mock.patch.object(transaction_module, "already_applied", return_value=None),
        mock.patch.object(transaction_module, "covering", return_value=None),
        without_rule("same_application"),
    ):
        yield


def without_rule(name: str) -> AbstractContextManager[Any]:
    rules = tuple(rule for rule in conflict_checker.CONFLICT_RULES if rule.name != name)
    assert len(rules) == len(conflict_checker.CONFLICT_RULES) - 1
    return mock.patch.object(conflict_checker, "CONFLICT_RULES", rules)


@contextmanager
def every_error_is_a_refusal() -> Iterator[None]:
    real = SimulatedStore.put_if_absent

    def mutated(self: SimulatedStore, path: str, data: bytes) -> None:
        try:
            real(self, path, data)
        except AmbiguousWriteError as error:
            raise StorePermissionError(error.problem) from error

    with mock.patch.object(SimulatedStore, "put_if_absent", mutated):
        yield


@contextmanager
def guard_is_blind() -> Iterator[None]:
    with (
        mock.patch.object(LogTailGuard, "check", return_value=None),
        mock.patch.object(LogTailGuard, "after_put", return_value=None),
    ):
        yield


@contextmanager
def newest_commit_is_not_replayed() -> Iterator[None]:
    real = snapshot_module.replay_tail

    def mutated(commits: Any) -> Any:
        return real(commits[:-1] if len(commits) > 1 else commits)

    with mock.patch.object(snapshot_module, "replay_tail", mutated):
        yield


@contextmanager
def refresh_finds_nothing() -> Iterator[None]:
    with mock.patch.object(snapshot_module, "extend_segment", lambda store, segment: segment):
        yield


MUTANTS = [
    Mutant(name="own commit is another's", apply=own_commit_is_anothers, sign="are one transaction"),
    Mutant(name="keys are ignored", apply=keys_are_ignored, sign="was applied 2 times"),
    Mutant(name="every error is a refusal", apply=every_error_is_a_refusal, sign="was refused"),
    Mutant(
        name="no rule concurrent_append",
        apply=lambda: without_rule("concurrent_append"),
        sign="did not see the rows",
    ),
    Mutant(
        name="no rule delete_read",
        apply=lambda: without_rule("delete_read"),
        sign="lost the removal",
        is_long=False,
        faults=Faults(),
    ),
    Mutant(name="no rule delete_delete", apply=lambda: without_rule("delete_delete"), sign="is not live"),
    Mutant(
        name="guard is blind",
        apply=guard_is_blind,
        sign="below the log's tail",
        is_long=True,
        faults=SLEEPY,
    ),
    Mutant(
        name="newest commit is not replayed", apply=newest_commit_is_not_replayed, sign="with other files"
    ),
    Mutant(name="refresh finds nothing", apply=refresh_finds_nothing, sign="was there before"),
    Mutant(
        name="no version floor",
        apply=lambda: mock.patch.object(MonotonicVersions, "floor", return_value=-1),
        sign="was there before",
        faults=LAGGING,
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_judge_finds_the_mutant(mutant: Mutant) -> None:
    with mutant.apply():
        plans = (
            draw_plan(f"{SEED}:{number}", is_long=mutant.is_long, faults=mutant.faults)
            for number in range(SEARCHED)
        )
        shown = any(mutant.sign in violation for plan in plans for violation in run_plan(plan).violations)
    assert shown, f"no history of {SEARCHED} shows it"


@pytest.mark.parametrize("sign", ["gives ids from", "is of the in-commit time"])
def test_judge_finds_stamps_that_know_no_winner(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    let_write(monkeypatch, "rowTracking")
    monkeypatch.setattr(StagedCommit, "follow", lambda self, winner: None)
    plans = (stamped(draw_plan(f"{SEED}:{number}")) for number in range(SEARCHED))
    shown = any(sign in violation for plan in plans for violation in run_plan(plan).violations)
    assert shown, f"no history of {SEARCHED} shows it"
