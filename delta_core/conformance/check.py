"""A check, what it is given, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.conformance.place import Place
from delta_core.conformance.workers import WorkerProcess


class Status(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    LIMITED = "limited"
    """The store refuses something that commits do not need, such as deleting."""
    NO_ACCESS = "no access"
    """The store was not reached, or refused what every check needs: nothing is known of it."""
    NOT_RUN = "not run"


@dataclass(slots=True, kw_only=True)
class Context:
    """What checks are given.

    Attributes:
        place: the prefix.
        writers: how many processes race and commit.
        seconds: how long this check should take; one that repeats something stops repeating it then.
        workers: the processes, once they are started.
        may_delete: False when the store refused to delete an object of ours.
    """

    place: Place
    writers: int
    clock: Clock = SYSTEM_CLOCK
    seconds: float = 10.0
    workers: Sequence[WorkerProcess] = field(default=())
    may_delete: bool = True

    def deadline(self) -> float:
        """The monotonic second at which to stop repeating."""
        return self.clock.monotonic_seconds() + self.seconds

    def is_over(self, deadline: float) -> bool:
        """Whether a deadline has passed."""
        return self.clock.monotonic_seconds() > deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something that a store must do.

    Attributes:
        name: stable, for documents.
        title: what holds when it passed.
        run: returns a line on what was seen; raises StoreContractError, or the store's own error.
        cause: why a store fails it, unless the error says so.
        fix: what to do then.
        seconds: how long it should take; three times that is given up on.
        decides_writers: whether a table with several writers is unsafe where it fails.
        with_workers: whether it needs the processes.
        deletes: whether it cannot be run where deleting is refused.
    """

    name: str
    title: str
    run: Callable[[Context], str]
    cause: str
    fix: str
    seconds: float = 10.0
    decides_writers: bool = False
    with_workers: bool = False
    deletes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What became of a check; `problem`, `cause` and `fix` are empty where it passed."""

    name: str
    title: str
    status: Status
    decides_writers: bool
    seconds: float
    detail: str = ""
    problem: str = ""
    cause: str = ""
    fix: str = ""
