"""A cell: one operation loses the race for a version to another, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

from delta_core.errors import ConcurrentModificationError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction import reordering
from delta_core.transaction.commit_result import AlreadyApplied
from delta_core.transaction.conflict_checker import RuleViolation, find_conflict
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint
from delta_core.transaction.winning_commit import WinningCommit
from tests.concurrency.matrix.layouts import Layout, targets, template
from tests.concurrency.matrix.memory_store import MemoryStore
from tests.concurrency.matrix.operation import Case, Interruption, Operation
from tests.concurrency.matrix.operations import LEVELS, OPERATIONS
from tests.concurrency.matrix.specification import ERRORS, Verdict, specified
from tests.concurrency.matrix.state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A pair of operations, where they meet, and the table's level."""

    loser: Operation
    winner: Operation
    layout: Layout
    level: IsolationLevel

    def __str__(self) -> str:
        return f"{self.loser.name} after {self.winner.name}, {self.layout}, {self.level}"

    @property
    def specified(self) -> Verdict:
        """What the written rules say."""
        loser, winner = targets(self.layout)
        return specified(self.loser.footprint(loser), self.winner.footprint(winner), self.level)

    def serial_states(self, start: TableState) -> list[TableState]:
        """What the two in a row make of the table; first in the order of their versions."""
        at_loser, at_winner = targets(self.layout)
        in_order = self.loser.effect(self.winner.effect(start, at_winner), at_loser)
        if self.level is IsolationLevel.SERIALIZABLE:
            return [in_order]
        return [in_order, self.winner.effect(self.loser.effect(start, at_loser), at_winner)]


def cells_of(loser: Operation, winner: Operation) -> Iterator[Cell]:
    """The pair's cells that differ: where the winner's place does not matter, one layout stands for all."""
    for level in LEVELS:
        for layout in Layout if winner.placed else (Layout.SAME_FILE,):
            yield Cell(loser=loser, winner=winner, layout=layout, level=level)


def every_pair() -> Iterator[tuple[Operation, Operation]]:
    """All pairs, an operation with itself included."""
    for loser in OPERATIONS.values():
        for winner in OPERATIONS.values():
            yield loser, winner


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """A table to which the winner has committed; run once, it wins against every loser."""

    store: MemoryStore
    state: TableState


@cache
def won(winner: str, layout: Layout, level: IsolationLevel) -> Won:
    """What the winner makes of the template when nobody is in its way."""
    start = template(level)
    store = start.store.fork()
    case = Case(
        snapshot=Snapshot.load(store),
        target=targets(layout)[1],
        paths=start.paths,
        interruption=Interruption(),
    )
    OPERATIONS[winner].run(case)
    return Won(store=store, state=TableState.of(Snapshot.load(store)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What happened in a cell.

    Attributes:
        state: the table afterwards; None when the log is what the winner left.
        operations: what the loser's commits are called.
        left: data files that no commit names.
    """

    verdict: Verdict
    error: str | None
    state: TableState | None
    operations: tuple[str, ...]
    left: tuple[str, ...]


def run_cell(cell: Cell) -> Outcome:
    """Run the loser for real; the winner's commit arrives when it is about to send its own."""
    start = template(cell.level)
    winner = won(cell.winner.name, cell.layout, cell.level).store
    store = start.store.fork()
    violations: list[RuleViolation] = []

    def examined(transaction: CommitFootprint, commit: WinningCommit) -> RuleViolation | None:
        violation = find_conflict(transaction, commit)
        violations.extend([violation] if violation else [])
        return violation

    race = Interruption(action=lambda: store.receive(winner, base=start.store))
    case = Case(
        snapshot=Snapshot.load(store), target=targets(cell.layout)[0], paths=start.paths, interruption=race
    )
    error: str | None = None
    result: object = None
    with patch.object(reordering, "find_conflict", examined):
        try:
            result = cell.loser.run(case)
        except ConcurrentModificationError as conflict:
            error = type(conflict).__name__
    assert race.done, f"nothing came in between: {cell}"
    new = sorted(store.paths() - winner.paths())
    # Of what a commit may bring along, such as a checksum, this is no test.
    bodies = [store.read(path) for path in new if path.startswith("_delta_log/") and path.endswith(".json")]
    files = [path for path in new if path.endswith(".parquet")]
    names = [file.rpartition("/")[2].encode() for file in files]
    return Outcome(
        verdict=Verdict(
            rule=violations[0].rule if violations else None,
            already_applied=isinstance(result, AlreadyApplied),
        ),
        error=error,
        state=TableState.of(Snapshot.load(store)) if bodies else None,
        operations=tuple(json.loads(body.partition(b"\n")[0])["commitInfo"]["operation"] for body in bodies),
        left=tuple(f for f, name in zip(files, names, strict=True) if not any(name in b for b in bodies)),
    )


def faults_of(cell: Cell, outcome: Outcome) -> list[str]:
    """Where the outcome is not what the specification and the model say."""
    expected = cell.specified
    faults = []
    if outcome.verdict != expected:
        faults.append(f"{outcome.verdict}, specified: {expected}")
    wanted = ERRORS[expected.rule] if expected.rule else None
    if outcome.error != wanted:
        faults.append(f"raised {outcome.error}, specified: {wanted}")
    start = template(cell.level).state
    after_winner = won(cell.winner.name, cell.layout, cell.level).state
    if after_winner != cell.winner.effect(start, targets(cell.layout)[1]):
        faults.append(f"the winner alone makes {after_winner}")
    # Who finds its work done keeps its files: a twin may have committed the very same ones.
    if outcome.left and not expected.already_applied:
        faults.append(f"left behind: {outcome.left}")
    if expected.rule or expected.already_applied:
        if outcome.operations or outcome.state is not None:
            faults.append(f"something of the loser is in the table: {outcome.operations}")
    else:
        if outcome.operations != cell.loser.commits:
            faults.append(f"committed {outcome.operations}, expected: {cell.loser.commits}")
        states = cell.serial_states(start)
        if outcome.state not in states:
            faults.append(f"the table is {outcome.state}, expected: {' or '.join(map(str, states))}")
    return faults
