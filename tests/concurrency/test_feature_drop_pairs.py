"""A feature is dropped while somebody else works on the table, and the other way round.

The other commits right before one of the drop's own commits, whichever that is. What the two make of the
table is what the change and then the drop make of it; where the drop gives up, it says why, no row has
changed, and called again it comes to that end. Whoever began before a drop and commits after it leaves no
trace. A usual run draws some of the races, `make soak-feature-drop-pairs` runs all of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.errors import ConcurrentModificationError, DeltaError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.feature_drop import drop as core_drop
from delta_core.maintenance.feature_drop.history import History
from delta_core.transaction import conflict_checker
from delta_core.transaction.observer import CommitPhase
from tests.concurrency.matrix import featured
from tests.concurrency.matrix.dropping import CHANGES, DROPS, Change, Drop, State, history_faults
from tests.concurrency.matrix.featured import log_faults
from tests.concurrency.matrix.operation import Interruption
from tests.support.soak import SEED, SOAKING

pytestmark = [pytest.mark.slow]

DRAWN = 10
MOST_COMMITS = 8

_ALONE = InlineExecutor(1)


@dataclass
class Before:
    """Lets the other go ahead right before a commit is sent, counted from 0."""

    at: int
    change: Change
    root: Path
    seen: int = field(default=0, init=False)
    done: bool = field(default=False, init=False)
    refused: bool = field(default=False, init=False)

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is not CommitPhase.BEFORE_PUT:
            return
        number, self.seen = self.seen, self.seen + 1
        if number == self.at and not self.done:
            self.done = True
            try:
                self.change(self.root)
            except DeltaError:
                self.refused = True


class Tables:
    """Copies of the tables, and what a change and a drop in a row make of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Path] = {}
        self._states: dict[tuple[str, Change], State | str] = {}
        self._copies = 0

    def copy(self, drop: Drop) -> Path:
        """The table that the drop starts from."""
        name = drop.make.__name__
        if name not in self._made:
            self._made[name] = self._folder / name
            drop.make(self._made[name])
        self._copies += 1
        return Path(shutil.copytree(self._made[name], self._folder / f"copy-{self._copies}"))

    def in_a_row(self, drop: Drop, change: Change) -> State | str:
        """What the two make of it; the error's code where the drop cannot be."""
        key = drop.name, change
        if key not in self._states:
            root = self.copy(drop)
            change(root)
            try:
                drop.run(root)
                self._states[key] = State.of(root)
            except DeltaError as error:
                self._states[key] = error.code
            shutil.rmtree(root)
        return self._states[key]


def nothing(root: Path) -> None:
    """What one does who is refused."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(tmp_path_factory.mktemp("dropping"))


def race(tables: Tables, drop: Drop, change: Change, at: int) -> tuple[bool, list[str]]:
    """Whether the other came in between, and what is wrong."""
    root = tables.copy(drop)
    hook = Before(at=at, change=change, root=root)
    error: DeltaError | None = None
    try:
        drop.run(root, hook)
    except DeltaError as caught:
        error = caught
    if not hook.done:
        shutil.rmtree(root)
        return False, []
    found = list(_faults(tables, drop, nothing if hook.refused else change, root, error))
    shutil.rmtree(root)
    return True, found


def _faults(
    tables: Tables, drop: Drop, change: Change, root: Path, error: DeltaError | None
) -> Iterator[str]:
    expected = tables.in_a_row(drop, change)
    if error is not None:
        alone = tables.copy(drop)
        change(alone)
        if State.of(root).rows != State.of(alone).rows:
            yield f"it gave up ({error}), and the rows are {State.of(root).rows}"
        shutil.rmtree(alone)
        try:
            drop.run(root)
        except DeltaError as again:
            if again.code != expected:
                yield f"it gave up ({error}), and again: {again}"
            return
    if State.of(root) != expected:
        yield f"the table is {State.of(root)}, in a row it is {expected}"
    yield from log_faults(root)
    yield from history_faults(root)
    yield from _by_peer(root)


def _by_peer(root: Path) -> Iterator[str]:
    """Whoever can read the table reads the same rows."""
    table = DeltaTable(root)
    if (table.protocol().reader_features or frozenset()) - {"deletionVectors", "columnMapping"}:
        return
    found = (
        deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(root))).execute("SELECT id FROM t")
    )
    seen = sorted(pa.table(found.read_all())["id"].to_pylist())
    ours = sorted(table.to_pyarrow_table(["id"])["id"].to_pylist())
    if seen != ours:
        yield f"deltalake reads {seen} in place of {ours}"


RACES = [(drop, change, at) for drop in DROPS for change in CHANGES for at in range(MOST_COMMITS)]


def test_a_drop_goes_on_from_whatever_others_did(tables: Tables) -> None:
    races = list(RACES)
    if not SOAKING:
        Random(SEED).shuffle(races)
    wrong: dict[str, list[str]] = {}
    run = 0
    for drop, change, at in races:
        if run >= DRAWN and not SOAKING:
            break
        met, faults = race(tables, DROPS[drop], CHANGES[change], at)
        run += met
        if faults:
            wrong[f"{drop}, {change} before commit {at}"] = faults
    assert not wrong, f"seed {SEED}: " + "\n".join(f"{name}: {found}" for name, found in wrong.items())
    assert run >= DRAWN


@pytest.mark.parametrize("fault", ["history", "next"])
def test_a_drop_that_does_not_look_is_noticed(
    fault: str, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The races would not be won if it went by what it had seen."""
    drop, change = DROPS["drop deletionVectors"], CHANGES["restore"]
    if fault == "history":
        seen = History.clean_since
        monkeypatch.setattr(
            History,
            "clean_since",
            lambda self, snapshot: replace(seen(self, snapshot), oldest_version=snapshot.version),
        )
    else:
        commit = core_drop.Drop.commit
        monkeypatch.setattr(
            core_drop.Drop,
            "commit",
            lambda self, *given, **options: commit(self, *given, **options | {"only_next": False}),
        )
        monkeypatch.setattr(conflict_checker, "CONFLICT_RULES", ())
    assert any(race(tables, drop, change, at)[1] for at in range(MOST_COMMITS))


LOSERS = [
    (loser, feature, level)
    for loser in featured.OPERATIONS
    for feature in ("deletionVectors", "rowTracking", "columnMapping", "inCommitTimestamp")
    for level in ("Serializable", "WriteSerializable")
]


def test_who_began_before_a_drop_leaves_no_trace(tmp_path: Path) -> None:
    """Whatever it had prepared may need the feature."""
    losers = LOSERS if SOAKING else Random(SEED).sample(LOSERS, DRAWN)
    wrong: dict[str, list[str]] = {}
    for number, (loser, feature, level) in enumerate(losers):
        root = tmp_path / str(number)
        featured.make(root, level)
        if faults := lose(root, loser, feature):
            wrong[f"{loser} after the drop of {feature}, {level}"] = faults
        shutil.rmtree(root)
    assert not wrong, f"seed {SEED}: " + "\n".join(f"{name}: {found}" for name, found in wrong.items())


def lose(root: Path, loser: str, feature: str) -> list[str]:
    """What is wrong once an operation has met a drop that was made when all of it was prepared."""
    before = _data_files(root)
    after: list[tuple[State, set[str]]] = []

    def win() -> None:
        mine = _data_files(root) - before
        DeltaTable(root).alter.drop_feature(feature, executor=_ALONE)
        after.append((State.of(root), _data_files(root) - mine))

    faults = log_faults(root) + history_faults(root)
    try:
        featured.OPERATIONS[loser](DeltaTable(root).snapshot, Interruption(action=win))
    except ConcurrentModificationError:
        found = State.of(root), _data_files(root)
        return faults + ([] if [found] == after else [f"it leaves {found} in place of {after}"])
    return [*faults, "it was committed"]


def _data_files(root: Path) -> set[str]:
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if "_delta_log" not in path.parts}
