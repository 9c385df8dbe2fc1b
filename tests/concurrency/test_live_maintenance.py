"""Maintenance of tables that are written to all the time: right, and red only for what we broke ourselves.

The steps are those of `delta_airflow.task_groups.maintenance`, as jobs. `make soak-live-maintenance` makes
the round twenty times over twenty tables.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.errors import DeltaError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.maintenance.clustering import in_memory
from delta_core.maintenance.compaction import task
from tests.support.preserved_tables import TABLES, build, rows_of
from tests.support.soak import SEED, rounds

ROUNDS = rounds(usual=1, soak=20)
COUNT = rounds(usual=7, soak=20)
PAUSE_SECONDS = 0.1
ROWS = pa.table({"id": list(range(30)), "city": ["Aarhus", "Bergen", "Cork"] * 10})
NEW = pa.table({"id": [1000], "city": ["Derry"]})
RULES = {"compaction_min_small_files": 2, "cluster_min_new_fraction": 0.0, "checkpoint_interval": 1}


def _small_files(path: Path, **definition: Any) -> pa.Table:
    if definition:
        DeltaTable.create(path, ROWS.schema, **definition)
    for start in range(0, 30, 10):
        write_deltalake(path, ROWS.slice(start, 10), mode="append")
    return NEW


def _clone(path: Path) -> pa.Table:
    source = path.with_name(f"{path.name}-source")
    _small_files(source)
    clone_table(source, path, shallow=True)
    for start in range(0, 20, 10):
        write_deltalake(path, ROWS.slice(start, 10), mode="append")
    return NEW


def _featured(name: str) -> Callable[[Path], pa.Table]:
    def make(path: Path) -> pa.Table:
        build(path, TABLES[name])
        return rows_of(TABLES[name], 1000, 1)

    return make


KINDS: dict[str, Callable[[Path], pa.Table]] = {
    "plain": _small_files,
    "vectors and change feed": _featured("tracked"),
    "mapped": _featured("mapped by name"),
    "mapped by id": _featured("mapped by id"),
    "clustered": lambda path: _small_files(path, cluster_by=["id"]),
    "in-commit times": lambda path: _small_files(
        path, configuration={"delta.enableInCommitTimestamps": "true"}
    ),
    "clone": _clone,
}
"""Each makes a table with files that are due, and gives a row that a writer appends."""


def job(path: Path, kind: str, **params: Any) -> JobResult:
    return run_job(JobSpec(kind=kind, table=TableRef(uri=str(path)), params=params), JobContext())


@contextmanager
def written_to(path: Path, rows: pa.Table) -> Iterator[list[DeltaError]]:
    """While somebody appends every 100 ms; what failed of that."""
    over, failed, first = threading.Event(), list[DeltaError](), threading.Event()

    def write() -> None:
        while not over.is_set():
            try:
                write_deltalake(path, rows, mode="append")
            except DeltaError as error:
                failed.append(error)
            first.set()
            over.wait(PAUSE_SECONDS)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert first.wait(60)
        yield failed
    finally:
        over.set()
        writer.join()


def maintained(path: Path, *, before_verify: Callable[[], None] = lambda: None) -> JobResult:
    """The steps, and the result of the check."""
    plan = job(path, "plan", rules=RULES)
    assert plan.status is JobStatus.SUCCEEDED, plan.error
    due = plan.output["due"]
    assert {"optimize", "cluster"} & set(due), plan.output["decisions"]
    rewritten = job(path, "optimize")
    assert rewritten.status is JobStatus.SUCCEEDED, rewritten.error
    assert len(rewritten.commits) == 1
    before_verify()
    checked = job(path, "verify", commits=list(rewritten.commits))
    if checked.status is JobStatus.SUCCEEDED:
        for kind, params in (("checkpoint", {}), ("vacuum", {"dry_run": True})):
            done = job(path, kind, **params)
            assert done.status is JobStatus.SUCCEEDED, done.error
    return checked


@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_table_stays_green_while_it_is_written_to(tmp_path: Path, number: int) -> None:
    for position, (name, make) in enumerate(islice(cycle(KINDS.items()), COUNT)):
        path = tmp_path / f"{position}"
        rows = make(path)
        with written_to(path, rows) as failed:
            checked = maintained(path)
        assert checked.status is JobStatus.SUCCEEDED, (number, name, checked.error)
        assert failed == []
        assert {check["name"] for check in checked.output["report"]["checks"]} == {
            "files_exist",
            "same_bytes",
            "same_rows",
        }


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_byte_that_changed_in_what_we_wrote_is_red(tmp_path: Path, number: int) -> None:
    rng = random.Random(f"{SEED}{number}")
    for position, (name, make) in enumerate(islice(cycle(KINDS.items()), COUNT)):
        path = tmp_path / f"{position}"
        rows = make(path)
        there = set(path.rglob("*.parquet"))

        def flip(path: Path = path, there: set[Path] = there) -> None:
            written = [
                file
                for file in path.rglob("*.parquet")
                if file not in there and "_delta_log" not in file.parts
            ]
            ours = max(written, key=lambda file: file.stat().st_size)
            data = bytearray(ours.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            ours.write_bytes(bytes(data))

        with written_to(path, rows):
            checked = maintained(path, before_verify=flip)
        assert checked.status is JobStatus.FAILED, (number, name)
        assert checked.error is not None
        assert str(path) in checked.error.message


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_row_that_our_rewrite_dropped_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = task.write_file

    def shorter(*arguments: Any, rows_expected: Callable[[], int], **options: Any) -> dict[str, Any]:
        *given, tables = arguments
        tables = iter(tables)
        left = chain([next(tables).slice(1)], tables)
        return real(*given, left, rows_expected=lambda: rows_expected() - 1, **options)

    monkeypatch.setattr(task, "write_file", shorter)
    monkeypatch.setattr(in_memory, "write_file", shorter)
    for position, (name, make) in enumerate(islice(cycle(KINDS.items()), COUNT)):
        path = tmp_path / f"{position}"
        rows = make(path)
        with written_to(path, rows):
            checked = maintained(path)
        assert checked.error is not None, (number, name)
        assert "rows fewer than the files that it removed" in checked.error.message
        assert str(path) in checked.error.message
