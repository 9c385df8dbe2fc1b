"""Runs a history and judges it: the same seed, the same history, to the letter."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from delta_core.log.log_path import commit_path
from delta_core.snapshot.snapshot import Snapshot
from tests.simulation.drops_judge import judge_drops
from tests.simulation.faults import Faults
from tests.simulation.history import Kind, Observation, Plan, Record, draw_plan, first_commit
from tests.simulation.judge import Model, judge
from tests.simulation.known import known
from tests.simulation.one_process import in_one_process
from tests.simulation.programs import Program, live_paths
from tests.simulation.rows_judge import judge_rows
from tests.simulation.scheduler import Scheduler, SimulatedClock
from tests.simulation.store import SimulatedStore

SHOWN_LINES = 80

ProgramFactory = Callable[..., Program]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A history, judged.

    Attributes:
        violations: what was promised and not kept.
        outcomes: how the jobs' runs ended, counted.
        trace: what happened, a line each.
        joined, carried, relocated: see `Record`.
        dropped: drops of features that were acknowledged.
    """

    plan: Plan
    violations: tuple[str, ...]
    outcomes: Counter[str]
    trace: tuple[str, ...]
    joined: int = 0
    carried: int = 0
    relocated: int = 0
    dropped: int = 0

    @property
    def new_violations(self) -> tuple[str, ...]:
        """Those that are not understood yet."""
        return tuple(violation for violation in self.violations if known(violation) is None)

    @property
    def digest(self) -> str:
        """Tells two traces apart."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()

    def report(self) -> str:
        """Everything that is needed to look into a violation."""
        tail = "\n".join(self.trace[-SHOWN_LINES:])
        return (
            f"seed {self.plan.seed!r}\nviolations:\n  " + "\n  ".join(self.violations) + "\n"
            f"faults: {self.plan.faults.shown()}\nproperties: {self.plan.configuration}\n"
            f"the last of {len(self.trace)} lines of its trace:\n{tail}"
        )


def simulate(seed: str, *, program: ProgramFactory = Program, threads: bool = False) -> Verdict:
    """Draw the history of a seed, run and judge it."""
    return run_plan(draw_plan(seed), program=program, threads=threads)


def run_plan(plan: Plan, *, program: ProgramFactory = Program, threads: bool = False) -> Verdict:
    """Run a history and judge it."""
    scheduler = Scheduler(f"run:{plan.seed}", threads=threads)
    store, record = SimulatedStore(scheduler, plan.faults, remote=plan.remote), Record()
    if plan.exists:
        store.create(commit_path(0), first_commit(plan))
    for number, skew_ms in enumerate(plan.skews_ms):
        worker = program(number, plan, scheduler=scheduler, store=store, record=record)
        scheduler.spawn(f"w{number}", worker.run, skew_ms=skew_ms)
    with in_one_process(plan.seed, scheduler):
        scheduler.run()
        _look_at_the_end(scheduler, store, record)
    return Verdict(
        plan=plan,
        violations=(
            *judge(plan, record, store.ledger),
            *_more(plan, record, store),
        ),
        outcomes=Counter(attempt.outcome for attempt in record.attempts),
        trace=tuple(scheduler.trace),
        joined=record.joined,
        carried=record.carried,
        relocated=record.relocated,
        dropped=sum(
            attempt.job.kind is Kind.DROP and attempt.outcome == "committed" for attempt in record.attempts
        ),
    )


def _more(plan: Plan, record: Record, store: SimulatedStore) -> Iterator[str]:
    """What only some plans are judged by."""
    if plan.drops:
        yield from judge_drops(record, Model.of(store.ledger), store.ledger)
    elif "deletionVectors" in plan.features:
        yield from judge_rows(plan, record, Model.of(store.ledger), store.ledger)


def _look_at_the_end(scheduler: Scheduler, store: SimulatedStore, record: Record) -> None:
    """On a store that works again the table opens, whatever has happened, and is what its log says."""
    if not any(entry.path == commit_path(0) for entry in store.ledger):
        return
    store.faults = Faults()
    began = len(store.ledger)

    def look() -> None:
        try:
            snapshot = Snapshot.load(store, clock=SimulatedClock(scheduler))
            paths = live_paths(snapshot)
        except Exception as error:  # judged: the table must open
            record.broken.append(f"at the end the table does not open: {type(error).__name__}: {error}")
        else:
            record.events.append(Observation(worker=-1, version=snapshot.version, paths=paths, began=began))

    scheduler.workers.clear()
    scheduler.spawn("end", look)
    # Names that were looked for too early stay hidden for a minute.
    scheduler.now_us += 120_000_000
    scheduler.run()


def collect_garbage_rarely() -> None:
    """Histories make and drop many small objects, and a collection finds next to nothing."""
    gc.set_threshold(50_000, 20, 20)
