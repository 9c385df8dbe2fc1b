"""A conformance check, its context, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.conformance.place import Place
from delta_core.conformance.workers import WorkerProcess


class Status(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    LIMITED = "limited"
    """The store refuses something that commits do not need, such as deletions."""
    NO_ACCESS = "no access"
    """The store was not reached, or refused what every check needs: the run has no result for the store."""
    NOT_RUN = "not run"


@dataclass(slots=True, kw_only=True)
class Context:
    """The prefix, the processes and the limits that the checks of a run share.

    Attributes:
        place: the prefix of the run.
        writers: the number of processes that race and commit.
        seconds: the planned duration of this check; a check that repeats something stops repeating then.
        workers: the processes, after they are started.
        may_delete: False when the store refused to delete an object of this run.
    """

    place: Place
    writers: int
    clock: Clock = SYSTEM_CLOCK
    seconds: float = 10.0
    workers: Sequence[WorkerProcess] = field(default=())
    may_delete: bool = True

    def deadline(self) -> float:
        """The time of the monotonic clock, in seconds, at which to stop repeating."""
        return self.clock.monotonic_seconds() + self.seconds

    def is_over(self, deadline: float) -> bool:
        """Whether a deadline has passed."""
        return self.clock.monotonic_seconds() > deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A requirement of a store.

    Attributes:
        name: a stable name, for documents.
        title: what holds when the check passed.
        run: returns a line about the observations; raises StoreContractError or an error of the store.
        cause: the usual cause of a failure, unless the error has one.
        fix: the fix for this cause.
        seconds: the planned duration; the check is abandoned after three times as long.
        decides_writers: whether a failure makes a table with several writers unsafe.
        with_workers: whether the check needs the processes.
        deletes: whether the check needs permission to delete.
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
    """The result of a check; `problem`, `cause` and `fix` are empty when the check passed."""

    name: str
    title: str
    status: Status
    decides_writers: bool
    seconds: float
    detail: str = ""
    problem: str = ""
    cause: str = ""
    fix: str = ""
