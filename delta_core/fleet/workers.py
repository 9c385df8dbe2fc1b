"""Observing and applying in several processes, for one machine without a scheduler.

Each process takes a part of the tables and works on it in order. Processes and not threads, because the work
on small tables is computation in Python, and because the CPU time of a verb is that of its process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from queue import Empty
from typing import Any, Final

from delta_core.clock import Clock
from delta_core.errors import ConfigurationError, JobFailedError
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.ledger import Row
from delta_core.fleet.observe import Before, Observation, observe_fleet
from delta_core.fleet.plan import FleetPlan
from delta_core.fleet.registry import FleetTable

MOST_JOBS: Final = 64
"""The most processes."""

_POLL_SECONDS: Final = 0.1
_rows: Any = None
"""In a process of `apply_in_processes`: the queue for its rows."""


def observe_in_processes(
    tables: Sequence[FleetTable],
    *,
    before: Mapping[str, Before],
    storage_options: Mapping[str, str] | None,
    clock: Clock,
    jobs: int,
) -> list[Observation]:
    """`observe_fleet` in several processes; the observations are in the order of the tables.

    Raises:
        ConfigurationError: `jobs` is not from 1 to 64.
        JobFailedError: a process ended.
    """
    count = min(_valid(jobs), max(1, len(tables)))
    if count == 1:
        return list(observe_fleet(tables, before=before, storage_options=storage_options, clock=clock))
    parts = [list(tables[index::count]) for index in range(count)]
    with ProcessPoolExecutor(count, mp_context=_context()) as pool:
        waiting = [
            pool.submit(
                _observed,
                part,
                {table.uri: before[table.uri] for table in part if table.uri in before},
                dict(storage_options or {}),
                clock,
            )
            for part in parts
        ]
        found = [_result(future) for future in waiting]
    by_uri = {item.table.uri: item for part in found for item in part}
    return [by_uri[table.uri] for table in tables]


def apply_in_processes(plan: FleetPlan, application: Application, *, jobs: int) -> Iterator[Row]:
    """`apply_plan` in several processes. Yields the rows as the verbs end.

    The verbs of one table run in one process, in their order. Each process runs its tables in the order of
    the plan.

    Raises:
        ConfigurationError: `jobs` is not from 1 to 64.
        JobFailedError: a process ended. The same plan can be run again: it continues where it stopped.
        StorageError: the ledger cannot be read or written.
    """
    count = min(_valid(jobs), max(1, len({entry.uri for entry in plan.entries})))
    if count == 1:
        yield from apply_plan(plan, application)
        return
    context = _context()
    rows = context.Queue()
    with ProcessPoolExecutor(count, mp_context=context, initializer=_send_rows_to, initargs=(rows,)) as pool:
        running = {pool.submit(_applied, plan.batch(index, count), application) for index in range(count)}
        announced = received = 0
        while running or received < announced:
            try:
                row = rows.get(timeout=_POLL_SECONDS)
            except Empty:
                ended, running = wait(running, timeout=0)
                announced += sum(_result(future) for future in ended)
                continue
            received += 1
            yield row


def _valid(jobs: int) -> int:
    if not 1 <= jobs <= MOST_JOBS:
        raise ConfigurationError(
            f"The number of jobs {jobs} is not valid.", fix=f"Choose from 1 to {MOST_JOBS}."
        )
    return jobs


def _context() -> Any:
    # A fork would copy locks of threads that Arrow and the object stores have started.
    return multiprocessing.get_context("spawn")


def _observed(
    tables: list[FleetTable], before: dict[str, Before], storage_options: dict[str, str], clock: Clock
) -> list[Observation]:
    return list(observe_fleet(tables, before=before, storage_options=storage_options, clock=clock))


def _send_rows_to(rows: Any) -> None:
    global _rows
    _rows = rows


def _applied(plan: FleetPlan, application: Application) -> int:
    count = 0
    for row in apply_plan(plan, application):
        _rows.put(row)
        count += 1
    return count


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise JobFailedError(
            "A process of the run ended before its work was done.",
            cause="It was killed, or the machine has too little memory.",
            fix="Run the same plan again, with fewer --jobs: it continues where it stopped.",
        ) from error
