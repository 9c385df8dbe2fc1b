"""The judge of rows is judged: it finds each mistake that a join of deletion vectors could make."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from delta_core.deletion_vectors.file_update import unite
from delta_core.transaction import conflict_checker, deletion_vector_merger
from delta_core.transaction.carried_deletions import DeletionCarrier
from delta_core.transaction.conflict_resolver import Resolution
from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger
from delta_core.transaction.row_ids import RowIds
from delta_core.transaction.row_map import RowsInOrder
from tests.simulation.history import draw_plan
from tests.simulation.rows import RowProgram, rowed
from tests.simulation.simulation import collect_garbage_rarely, run_plan

SEARCHED = 400


def forgets_the_winners_rows() -> AbstractContextManager[Any]:
    return mock.patch.object(
        deletion_vector_merger,
        "unite",
        lambda known, wanted, *, num_records: unite(np.empty(0, np.int64), wanted, num_records=num_records),
    )


def forgets_its_own_rows() -> AbstractContextManager[Any]:
    def settle(self: DeletionVectorMerger, winner: Any, actions: Any, transaction: Any) -> Any:
        found = original(self, winner, actions, transaction)
        if found is None or len(found.actions) < 2:
            return found
        return replace(found, actions=found.actions[:-2])

    original = DeletionVectorMerger._settle
    return mock.patch.object(DeletionVectorMerger, "_settle", settle)


def settles_whatever_the_winner_did() -> AbstractContextManager[Any]:
    def resolve(
        self: DeletionVectorMerger, violation: Any, winner: Any, actions: Any, *, transaction: Any
    ) -> Any:
        return Resolution(actions=actions, rest=replace(winner, adds=(), removes=()))

    return mock.patch.object(DeletionVectorMerger, "resolve", resolve)


def leaves_it_to_the_winner() -> AbstractContextManager[Any]:
    """Where a winner took rows of a file, nothing is taken from it any more."""
    return mock.patch.object(deletion_vector_merger._MergedFile, "is_done", property(lambda self: True))


def moves_rows_that_are_gone() -> AbstractContextManager[Any]:
    """An update does not notice that a winner has taken rows which it brings again."""

    def merge(*args: Any) -> Any:
        return replace(original(*args), deleted_twice=0)

    original = deletion_vector_merger._merge
    return mock.patch.object(deletion_vector_merger, "_merge", merge)


def numbers_files_anew() -> AbstractContextManager[Any]:
    original = RowIds._with_row_ids

    def numbered(self: RowIds, actions: Any, version: int) -> Any:
        bare = [
            replace(action, base_row_id=None) if hasattr(action, "base_row_id") else action
            for action in actions
        ]
        return original(self, bare, version)

    return mock.patch.object(RowIds, "_with_row_ids", numbered)


def carries_nothing_over() -> AbstractContextManager[Any]:
    """A rewrite commits its files as they are, whatever a winner deleted."""
    original = DeletionCarrier._with_deletions
    return mock.patch.object(
        DeletionCarrier, "_with_deletions", lambda self, actions, carried: original(self, actions, {})
    )


def carries_over_to_the_row_beside() -> AbstractContextManager[Any]:
    original = RowsInOrder.new_positions

    def moved(self: RowsInOrder, rows: Any, new_files: Any) -> Any:
        found = original(self, rows, new_files)
        return found and {path: np.maximum(0, positions - 1) for path, positions in found.items()}

    return mock.patch.object(RowsInOrder, "new_positions", moved)


def lets_metadata_pass() -> AbstractContextManager[Any]:
    left = tuple(rule for rule in conflict_checker.CONFLICT_RULES if rule.name != "metadata_changed")
    return mock.patch.object(conflict_checker, "CONFLICT_RULES", left)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "sign"),
    [
        (forgets_the_winners_rows, "brings back the rows"),
        (forgets_its_own_rows, "left the rows"),
        (leaves_it_to_the_winner, "twice"),
        (moves_rows_that_are_gone, "updates rows and loses"),
        (settles_whatever_the_winner_did, "is not live"),
        (carries_nothing_over, "updates rows and loses"),
        (carries_over_to_the_row_beside, "updates rows and loses"),
        (numbers_files_anew, "the ids"),
        (lets_metadata_pass, "gives the numbers"),
    ],
)
def test_judge_finds_the_mutant(mutant: Callable[[], AbstractContextManager[Any]], sign: str) -> None:
    collect_garbage_rarely()
    with mutant():
        shown = any(
            sign in violation
            for number in range(SEARCHED)
            for violation in run_plan(rowed(draw_plan(f"rows:{number}")), program=RowProgram).violations
        )
    assert shown, f"no history of {SEARCHED} shows it"
