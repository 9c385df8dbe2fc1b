"""Every pair of operations on a table with deletion vectors, with and without row ids, at both levels.

What the written rules say, happens, and the rows are those of the two in a row. Pairs with an operation of
Spark are drawn; `make soak-row-rules` runs all cells.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from delta_core import DeltaTable
from delta_core.errors import ConcurrentModificationError
from delta_core.transaction.carried_deletions import DeletionCarrier
from tests.concurrency.matrix.operation import Interruption
from tests.concurrency.matrix.row_operations import OPERATIONS, make, state_of
from tests.concurrency.matrix.row_rules import COMMITS, NEW_ROWS, SAME_FILES, SAME_ROWS, specified
from tests.support.soak import drawn
from tests.support.spark import spark_session

__all__ = ["spark_session"]

Cell = tuple[str, str, str, bool]

CELLS: list[Cell] = [
    (loser, winner, level, row_ids)
    for loser in OPERATIONS
    for winner in OPERATIONS
    for level in ("WriteSerializable", "Serializable")
    for row_ids in (True, False)
]
ON_SPARK = [cell for cell in CELLS if any(OPERATIONS[name].needs_spark for name in cell[:2])]
ALONE = [cell for cell in CELLS if cell not in ON_SPARK]


class Tables:
    """A table of each kind, to be copied."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies = 0

    def copy(self, level: str, *, row_ids: bool) -> Path:
        made = self._folder / f"{level} {row_ids}"
        if not made.exists():
            make(made, level, row_ids=row_ids)
        self._copies += 1
        return Path(shutil.copytree(made, self._folder / f"copy {self._copies}"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("row-rules"))


def check(tables: Tables, cell: Cell, spark: object = None) -> None:
    """Run a cell and compare it with the rules."""
    loser, winner, level, row_ids = cell
    first, second = OPERATIONS[winner], OPERATIONS[loser]
    root = tables.copy(level, row_ids=row_ids)
    before = state_of(root)
    hook = Interruption(action=lambda: first.attempt(DeltaTable(root).snapshot, Interruption(), spark))
    expected = specified(second.footprint, first.footprint, serializable=level == "Serializable")
    found: str | None = None
    try:
        second.attempt(DeltaTable(root).snapshot, hook, spark)
    except ConcurrentModificationError as error:
        found = type(error).__name__
    assert hook.done, cell
    if found is not None:
        assert found in expected, f"{cell}: {found}, expected {sorted(expected)}"
        assert state_of(root) == first.effect(before), cell
    else:
        assert expected == COMMITS, f"{cell}: committed, expected {sorted(expected)}"
        reordered = first.footprint.is_blind_append and level == "WriteSerializable"
        orders = [second.effect(first.effect(before))]
        orders += [first.effect(second.effect(before))] if reordered else []
        assert state_of(root) in orders, cell


@pytest.mark.parametrize("cell", drawn(ALONE, usual=40), ids=str)
def test_what_the_rules_say_happens(tables: Tables, cell: Cell) -> None:
    check(tables, cell)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("cell", drawn(ON_SPARK, usual=6), ids=str)
def test_what_the_rules_say_happens_on_spark(tables: Tables, cell: Cell, spark: object) -> None:
    check(tables, cell, spark)


def test_the_rules_decide_in_every_way() -> None:
    found = {
        specified(
            OPERATIONS[loser].footprint, OPERATIONS[winner].footprint, serializable=level == "Serializable"
        )
        for loser, winner, level, _ in CELLS
    }
    assert found == {COMMITS, SAME_ROWS, NEW_ROWS, SAME_FILES}


def test_a_missing_carrier_is_noticed(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeletionCarrier, "resolve", lambda *args, **named: None)
    with pytest.raises(AssertionError, match="z-order"):
        check(tables, ("z-order", "delete 0-2", "WriteSerializable", False))
