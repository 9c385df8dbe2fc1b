"""The command `auto-compact`: a process beside the writers that compacts what their commits leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from delta_core.cli.console import FAILED, print_error, print_note
from delta_core.cli.options import OptionFile, storage_options
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import LeaseHeldError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.kinds.auto_compact import AUTO_COMPACTION_LEASE
from delta_core.jobs.run_job import run_job


def auto_compact(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="Paths or URIs of the tables.")],
    always: Annotated[
        bool, typer.Option("--always", help="Also tables that do not set delta.autoOptimize.autoCompact.")
    ] = False,
    min_files: Annotated[
        int | None,
        typer.Option(help="Small files from which on a partition is compacted. By default 50.", min=2),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(help="Check again after so many seconds, until the process is ended.", min=0.1),
    ] = None,
    options: OptionFile = None,
) -> None:
    """Compact partitions in which commits have left many small files.

    It runs beside the writers, under a lease for each table, so no writer waits for it. Without --every it
    checks once: run it by a scheduler after the loads.
    """
    params: dict[str, Any] = {"always": always}
    if min_files is not None:
        params["min_files"] = min_files
    failed = False
    for table, result in rounds(tables, params, options, every=every):
        failed = _show(table, result) or failed
    raise typer.Exit(FAILED if failed else 0)


def rounds(
    tables: Sequence[str],
    params: Mapping[str, Any],
    options: Path | None = None,
    *,
    every: float | None,
    limit: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Iterator[tuple[str, JobResult]]:
    """Check each table, again and again where `every` is a number of seconds, at most `limit` times.

    Args:
        tables: paths or URIs.
        params: the parameters of the jobs.
        options: the file with storage options.
        every: the pause between two rounds in seconds; None for one round.
        limit: the number of rounds; None for no limit.
        clock: waits between two rounds.

    Yields:
        Each table with the result of its job.
    """
    for number in count(1):
        for table in tables:
            spec = JobSpec(
                kind="auto_compact", table=TableRef(uri=table), params=params, lease=AUTO_COMPACTION_LEASE
            )
            yield table, run_job(spec, JobContext(storage_options=storage_options(table, options)))
        if every is None or number == limit:
            return
        clock.sleep(every)


def _show(table: str, result: JobResult) -> bool:
    """Print one line about a table; True when its job failed."""
    if result.error is not None and result.error.code == LeaseHeldError.code:
        print_note(f"{table}: another process compacts it.")
        return False
    if result.status is not JobStatus.SUCCEEDED:
        print_error(f"{table}: {result.error.message if result.error else result.status.value}")
        return True
    if result.commits:
        metrics = result.metrics
        print_note(
            f"{table}: {metrics.files_removed} files became {metrics.files_added} in version "
            f"{result.version_to}."
        )
    else:
        print_note(f"{table}: {result.output.get('reason', 'nothing to do')}.")
    return False
