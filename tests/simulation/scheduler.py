"""Workers of which exactly one runs at a time, on simulated time; a seed decides who goes on.

Every request to the store and every sleep is a scheduling point. Whoever may go on there is drawn, and so
is how much time passes, so a seed stands for one history and repeats it to the letter. Time only moves
here: forty days cost as much as a millisecond.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.simulation.fibers import Fiber, make_fiber

EPOCH_MS = 1_700_000_000_000
MAX_STEPS = 20_000


class Crashed(BaseException):
    """The worker's process ended at this point: no handler of errors may catch that."""


class EndlessError(AssertionError):
    """A history that does not come to its end."""


@dataclass(slots=True, kw_only=True)
class Worker:
    """One simulated process.

    Attributes:
        skew_ms: how far its wall clock is from the store's.
        wake_us: when it may go on.
        dead: between a crash and the restart; it can make no request then.
    """

    name: str
    skew_ms: int
    random: Random
    wake_us: int = 0
    dead: bool = False
    fiber: Fiber | None = None


@dataclass(order=True, slots=True)
class _Event:
    due_us: int
    number: int
    effect: Callable[[], None] = field(compare=False)


class Scheduler:
    """Runs workers to their end. `trace` says what happened, in order."""

    def __init__(self, seed: str, *, threads: bool = False) -> None:
        self.random = Random(seed)
        self.now_us = 0
        self.trace: list[str] = []
        self.workers: list[Worker] = []
        self._threads = threads
        self._current: Worker | None = None
        self._events: list[_Event] = []
        self._event_count = 0

    @property
    def now_ms(self) -> int:
        """The store's time, which has no skew."""
        return EPOCH_MS + self.now_us // 1000

    @property
    def current(self) -> Worker:
        """The worker that runs."""
        assert self._current is not None
        return self._current

    def spawn(self, name: str, function: Callable[[], None], *, skew_ms: int = 0) -> Worker:
        """Add a worker; it starts when `run` first picks it."""
        worker = Worker(name=name, skew_ms=skew_ms, random=Random(f"{name}:{self.random.random()}"))
        worker.fiber = make_fiber(function, threads=self._threads)
        self.workers.append(worker)
        return worker

    def run(self) -> None:
        """Run until every worker has ended and every event has happened.

        Raises:
            EndlessError: after MAX_STEPS.
        """
        alive = list(self.workers)
        for _ in range(MAX_STEPS):
            if not alive:
                break
            ready = [worker for worker in alive if worker.wake_us <= self.now_us]
            due = bool(self._events) and self._events[0].due_us <= self.now_us
            if not ready and not due:
                self._wait(alive)
                continue
            pick = int(self.random.random() * (len(ready) + due))
            if pick == len(ready):
                heapq.heappop(self._events).effect()
                continue
            self._step(ready[pick])
            if ready[pick].fiber.done:  # type: ignore[union-attr]
                alive.remove(ready[pick])
        else:
            raise EndlessError(f"{len(alive)} workers are still active after {MAX_STEPS} steps")
        while self._events:
            event = heapq.heappop(self._events)
            self.now_us = max(self.now_us, event.due_us)
            event.effect()

    def point(self) -> None:
        """Let whoever is drawn go on; returns when it is this worker again.

        Raises:
            Crashed: the worker is dead.
        """
        worker = self.current
        if worker.dead:
            raise Crashed
        # Requests take up to 60 ms: short against every backoff, so that races are many.
        self.now_us += int(self.random.random() * 60_000)
        worker.fiber.park()  # type: ignore[union-attr]

    def sleep(self, seconds: float) -> None:
        """Hold this worker for a time of the simulation."""
        self.current.wake_us = self.now_us + max(0, int(seconds * 1_000_000))
        self.point()

    def after(self, seconds: float, effect: Callable[[], None]) -> None:
        """Have something happen at some point after a time, whatever has become of this worker by then."""
        self._event_count += 1
        due_us = self.now_us + int(seconds * 1_000_000)
        heapq.heappush(self._events, _Event(due_us, self._event_count, effect))

    def note(self, what: str) -> None:
        """Write a line into the trace."""
        name = self._current.name if self._current is not None else "-"
        self.trace.append(f"{self.now_us / 1e6:.6f} {name} {what}")

    def _wait(self, alive: list[Worker]) -> None:
        wakes = [worker.wake_us for worker in alive]
        if self._events:
            wakes.append(self._events[0].due_us)
        self.now_us = min(wakes)

    def _step(self, worker: Worker) -> None:
        self._current = worker
        try:
            worker.fiber.resume()  # type: ignore[union-attr]
        finally:
            self._current = None


class SimulatedClock:
    """The clock of whichever worker runs: the wall clock has the worker's skew, sleeping takes no time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def now_ms(self) -> int:
        return self._scheduler.now_ms + self._scheduler.current.skew_ms

    def monotonic_seconds(self) -> float:
        return self._scheduler.now_us / 1e6

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(seconds)
