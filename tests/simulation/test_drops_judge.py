"""The judge of dropped features is judged: it finds each step of a drop that is left out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from delta_core.maintenance.feature_drop import apply
from delta_core.maintenance.feature_drop.drop import Drop
from delta_core.maintenance.feature_drop.history import CleanSince, History
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.removal import RemovalPlan
from tests.simulation.drops import DropProgram, dropping
from tests.simulation.history import draw_plan
from tests.simulation.simulation import collect_garbage_rarely, run_plan

SEARCHED = 300


def takes_the_past_for_clean() -> AbstractContextManager[Any]:
    def clean_since(self: History, snapshot: Snapshot) -> CleanSince:
        found = original(self, snapshot)
        return replace(found, version=found.oldest_version)

    original = History.clean_since
    return mock.patch.object(History, "clean_since", clean_since)


def writes_no_checkpoint_behind_the_past() -> AbstractContextManager[Any]:
    return mock.patch.object(apply, "checkpointed", lambda latest: latest)


def does_not_protect_the_past() -> AbstractContextManager[Any]:
    return mock.patch.object(
        RemovalPlan, "with_protection", lambda self, *, version: replace(self, history_is_clean=True)
    )


def does_not_look_who_was_first() -> AbstractContextManager[Any]:
    def commit(self: Drop, latest: Snapshot, *actions: Any, only_next: bool = False, **said: Any) -> Any:
        return original(self, latest, *actions, **said)

    original = Drop.commit
    return mock.patch.object(Drop, "commit", commit)


def loses_the_rows_of_files_with_deletion_vectors() -> AbstractContextManager[Any]:
    def rewritten(self: DropProgram, task: Any) -> Any:
        kept = task["files"][1:] or task["files"]
        result = original(self, {**task, "files": kept})
        return {**result, "source_rows": [0] * (len(task["files"]) - len(kept)) + result["source_rows"]}

    original = DropProgram.rewritten
    return mock.patch.object(DropProgram, "rewritten", rewritten)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutation", "sign", "first"),
    [
        (takes_the_past_for_clean, "nothing protects the log", 0),
        (writes_no_checkpoint_behind_the_past, "no checkpoint is there", 0),
        (does_not_protect_the_past, "nothing protects the log", 0),
        (does_not_look_who_was_first, "nothing protects the log", 703),
        (loses_the_rows_of_files_with_deletion_vectors, "rows after", 0),
    ],
    ids=lambda found: getattr(found, "__name__", ""),
)
def test_a_step_that_is_left_out_is_found(
    mutation: Callable[[], AbstractContextManager[Any]], sign: str, first: int
) -> None:
    """The search begins at the history that is known to show it, where those before it are many."""
    collect_garbage_rarely()
    with mutation():
        found = (
            violation
            for number in range(first, first + SEARCHED)
            for violation in run_plan(dropping(draw_plan(f"drops:{number}")), program=DropProgram).violations
        )
        assert any(sign in violation for violation in found)
