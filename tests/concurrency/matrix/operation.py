"""An operation of the matrix: how it runs, what it declares, and what it does to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.observer import CommitPhase
from tests.concurrency.matrix.footprint import Footprint
from tests.concurrency.matrix.layouts import Target
from tests.concurrency.matrix.state import TableState


@dataclass
class Interruption:
    """Runs something once, when the operation is ready to commit and has sent nothing yet.

    It is an observer of commits and a sink of progress, so that it fits what each operation offers.
    """

    action: Callable[[], object] = lambda: None
    done: bool = field(default=False)

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is CommitPhase.PREPARED:
            self()

    def emit(self, event: object) -> None:
        if getattr(event, "name", "") == "commit.before":
            self()

    def __call__(self) -> None:
        if not self.done:
            self.done = True
            self.action()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of an operation: on this snapshot, here, interrupted so; `paths` finds a label's file.

    `properties` are those of its commit, such as the idempotency key of a run that may be repeated.
    """

    snapshot: Snapshot
    target: Target
    paths: Mapping[str, str]
    interruption: Interruption
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation as a value.

    Attributes:
        commits: the names that it has in the table's history.
        placed: whether its target matters; what works on the whole table is the same in every layout.
        run: prepares everything on the case's snapshot, lets the interruption go ahead, then commits.
        footprint: what it reads and changes, by where it works.
        effect: what it does when it runs alone.
    """

    name: str
    commits: tuple[str, ...]
    placed: bool = True
    run: Callable[[Case], object]
    footprint: Callable[[Target], Footprint]
    effect: Callable[[TableState, Target], TableState]
