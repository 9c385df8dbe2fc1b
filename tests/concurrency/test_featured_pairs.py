"""Every pair of real operations on a table with many features: one commits while the other is about to.

What they make of the table is what they make of it in a row, or the second one leaves no trace. The oracle is
the operations themselves, run one after the other.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from delta_core import DeltaTable
from delta_core.errors import ConcurrentModificationError, DeltaError
from tests.concurrency.matrix.featured import (
    BY_DELETION_VECTORS,
    MERGE,
    OPERATIONS,
    UPDATE,
    State,
    faults,
    make,
    named_files,
    row_ids,
)
from tests.concurrency.matrix.operation import Interruption
from tests.support.soak import drawn

LEVELS = ("Serializable", "WriteSerializable")

_DEFINITIONS = {"rename a column", "drop a column", "add a column", "vectors off"}
_REPLACES_A = {"replace in A"}
_MOVES_A = {"compaction of a"}
_CHANGES_A = {UPDATE, MERGE, *(name for name in BY_DELETION_VECTORS if "A" in name)}
_DOMAIN = {"set the domain", "remove the domain"}
_APART = {"delete elsewhere in A", "delete in C"}
"""What takes rows that the update does not, of the same file or of another."""


def must_pass(loser: str, winner: str) -> bool:
    """Whether the two get along at every level, by what this library promises of them."""
    if (loser in _CHANGES_A and winner in _MOVES_A) or (loser in _MOVES_A and winner in _CHANGES_A):
        return True
    if winner == "delete all of A":
        return loser in ("append", "delete in C", "purge of B", *_DOMAIN)
    if loser in BY_DELETION_VECTORS and winner in BY_DELETION_VECTORS | _DOMAIN:
        return True
    if {UPDATE, MERGE} & {loser, winner} and {loser, winner} & _APART:
        return True
    if loser == "append":
        return winner not in _DEFINITIONS | {"restore"}
    return loser in _DOMAIN and winner not in _DOMAIN | _DEFINITIONS | {"restore"}


def must_conflict(loser: str, winner: str) -> bool:
    """Whether one of the two has to give way."""
    if winner in _DEFINITIONS:
        return True
    replaced = (loser in _CHANGES_A and winner in _REPLACES_A) or (
        loser in _REPLACES_A and winner in _CHANGES_A
    )
    return replaced or (loser in _DOMAIN and winner in _DOMAIN)


PAIRS = [
    (loser, winner)
    for loser in OPERATIONS
    for winner in OPERATIONS
    if {loser, winner} & (BY_DELETION_VECTORS | {"purge of B", "restore", UPDATE, MERGE})
    or {loser, winner} <= _DOMAIN
]
"""The other pairs are as on a table without features."""


class Tables:
    """Copies of the table, and of what each winner makes of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, ...], Path] = {}
        self._copies = 0

    def at(self, level: str, *done: str) -> Path:
        """The table after operations in a row; not to be changed."""
        key = (level, *done)
        if key not in self._made:
            if not done:
                root = self._folder / level
                make(root, level)
            else:
                root = self.copy(level, *done[:-1])
                OPERATIONS[done[-1]](DeltaTable(root).snapshot, Interruption())
            self._made[key] = root
        return self._made[key]

    def copy(self, level: str, *done: str) -> Path:
        """The same, to be changed."""
        source = self.at(level, *done)
        self._copies += 1
        return Path(shutil.copytree(source, self._folder / f"copy-{self._copies}"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("featured"))


@pytest.mark.parametrize(
    ("loser", "winner", "level"),
    [
        *((*pair, LEVELS[0]) for pair in drawn(PAIRS, usual=50)),
        *(pytest.param(*pair, LEVELS[1], marks=pytest.mark.slow) for pair in drawn(PAIRS, usual=30)),
    ],
)
def test_pair(tables: Tables, loser: str, winner: str, level: str) -> None:
    root = tables.copy(level)
    before = row_ids(root)
    files = _files(root)

    def win() -> None:
        # The winner's own commit, from the same state.
        OPERATIONS[winner](DeltaTable(root).snapshot, Interruption())

    hook = Interruption(action=win)
    error: Exception | None = None
    try:
        OPERATIONS[loser](DeltaTable(root).snapshot, hook)
    except ConcurrentModificationError as caught:
        error = caught
    assert hook.done
    assert faults(root, before) == []
    state = State.of(root)
    if error is None:
        assert not must_conflict(loser, winner)
        serial = _states(tables, level, (winner, loser), (loser, winner))
        allowed = serial if level == "WriteSerializable" else serial[:1]
        assert state in allowed
        return
    assert not must_pass(loser, winner), error
    assert state == State.of(tables.at(level, winner))
    left = _files(root) - files - named_files(root)
    assert left == set(), "what the loser wrote is still there"


def _states(tables: Tables, level: str, *orders: tuple[str, str]) -> list[State]:
    """What orders make of the table; without those that cannot be, such as a column renamed twice."""
    found = []
    for order in orders:
        try:
            found.append(State.of(tables.at(level, *order)))
        except DeltaError:
            continue
    return found


def _files(root: Path) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and "_delta_log" not in path.parts
    }
