"""A driver killed anywhere, or stopped and overtaken by its retry, applies its job once.

The kill points are the progress events of real jobs; the seed draws the jobs and the points.
What the tables hold is read by deltalake and from the raw commit files, never by our own reader.
"""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from spark_jobs.connect_server import ConnectServer
from tests.support.driver_runs import Driver, DriverRun, commits_with, rows_by_peer
from tests.support.soak import drawn, rounds
from tests.support.spark import FEW_PARTITIONS

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

MONTHS = (1, 2, 3)


def _rows(first: int, count: int, month: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "month": pa.array([month] * count, pa.int32()),
            "name": pa.array([f"row {i}" for i in range(count)]),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A kind of job and its parameters."""

    name: str
    kind: str
    params: dict[str, object]
    by_vectors: bool = False

    def on(self, table: Path) -> JobSpec:
        """The spec of this job for a table; the key depends on the job alone, as a task's does."""
        key = IdempotencyKey(app_id=f"kill-points-{self.name}", version=0)
        return JobSpec(kind=self.kind, table=TableRef(uri=str(table)), params=self.params, idempotency=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """What a job does when nothing disturbs it."""

    run: DriverRun
    table: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Tables to start from, the jobs to run on copies of them, and a server to run them on.

    Attributes:
        starts: the table without and, by True, with deletion vectors.
    """

    starts: dict[bool, Path]
    jobs: dict[str, Job]
    undisturbed: dict[str, Undisturbed]
    remote: str
    folder: Path

    def start_of(self, job: str) -> Path:
        return self.starts[self.jobs[job].by_vectors]

    def copy(self, job: str, name: str) -> Path:
        return Path(shutil.copytree(self.start_of(job), self.folder / name))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("kill-points")
    start = folder / "start"
    for number in range(6):
        data = _rows(number * 100, 100, MONTHS[number % len(MONTHS)])
        write_deltalake(str(start), data, mode="append", partition_by=["month"])
    vectors = Path(shutil.copytree(start, folder / "start-vectors"))
    DeltaTable(vectors).alter.set_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable(vectors).delete("id = 160")
    starts = {False: start, True: vectors}
    pq.write_table(_rows(10_000, 500, 2), folder / "source.parquet")
    source = {"format": "parquet", "uris": [str(folder / "source.parquet")]}
    changed = pa.concat_tables([_rows(150, 20, 2), _rows(20_000, 30, 3)])
    changed = changed.set_column(2, "name", pa.array([f"changed {i}" for i in range(50)]))
    pq.write_table(changed, folder / "changes.parquet")
    changes = {"format": "parquet", "uris": [str(folder / "changes.parquet")]}
    jobs = [
        Job(name="append", kind="load", params={"source": source, "mode": "append"}),
        Job(
            name="replace",
            kind="load",
            params={"source": source, "mode": "overwrite", "replace_where": "month = 2"},
        ),
        Job(
            name="merge",
            kind="merge",
            params={
                "source": changes,
                "on": "t.id = s.id AND t.month = s.month",
                "matched": [{"action": "update_all"}],
                "not_matched": [{"action": "insert_all"}],
            },
        ),
        Job(name="delete", kind="delete", params={"where": "id % 3 = 1 AND month < 3"}),
        Job(name="update", kind="update", params={"set": {"name": "concat(name, '!')"}, "where": "id < 250"}),
        Job(name="optimize", kind="optimize", params={}),
        Job(name="restore", kind="restore", params={"version": 3, "dry_run": False}),
    ]
    jobs += [
        replace(job, name=f"{job.name}-by-vectors", by_vectors=True)
        for job in jobs
        if job.kind in ("merge", "delete", "update")
    ]
    jobs = drawn(jobs, usual=3)
    with ConnectServer.start(directory=folder, master="local[2]", conf=FEW_PARTITIONS) as server:
        undisturbed = {}
        for job in jobs:
            table = Path(shutil.copytree(starts[job.by_vectors], folder / f"undisturbed-{job.name}"))
            run = Driver(job.on(table), folder / f"run-{job.name}", remote=server.url).finish()
            assert run.code == 0, run.output
            assert len(commits_with(table, f"kill-points-{job.name}")) == 1
            undisturbed[job.name] = Undisturbed(run=run, table=table)
        yield Bench(
            starts=starts,
            jobs={job.name: job for job in jobs},
            undisturbed=undisturbed,
            remote=server.url,
            folder=folder,
        )


def test_a_job_killed_at_any_event_and_run_again_applies_once(bench: Bench, rng: random.Random) -> None:
    points = [(name, i) for name, done in bench.undisturbed.items() for i in range(len(done.run.events))]
    assert len(points) >= 6 * len(bench.jobs), points
    for name, index in rng.sample(points, min(len(points), rounds(usual=3, soak=len(points)))):
        event = bench.undisturbed[name].run.events[index]
        label = f"{name} killed at event {index} ({event})"
        table = bench.copy(name, f"killed-{name}-{index}")
        spec = bench.jobs[name].on(table)
        before, after = rows_by_peer(bench.start_of(name)), rows_by_peer(bench.undisturbed[name].table)

        killed = Driver(spec, bench.folder / f"first-{name}-{index}", remote=bench.remote, at=index).finish()

        assert killed.code == -signal.SIGKILL, f"{label}: {killed.output}"
        assert killed.result is None, label
        assert rows_by_peer(table) in (before, after), f"{label}: half a job is visible"
        applied = len(commits_with(table, f"kill-points-{name}"))
        assert applied in (0, 1), label

        again = Driver(spec, bench.folder / f"second-{name}-{index}", remote=bench.remote).finish()

        assert again.code == 0, f"{label}: {again.output}"
        assert again.result is not None
        assert again.result["already_applied"] is bool(applied), label
        _equals_undisturbed(bench, name, table, label)


def test_a_stopped_driver_that_wakes_after_its_retry_changes_nothing(bench: Bench) -> None:
    for name in drawn(bench.jobs, usual=1):
        table = bench.copy(name, f"zombie-{name}")
        spec = bench.jobs[name].on(table)
        index = bench.undisturbed[name].run.events.index("commit.before")
        zombie = Driver(
            spec, bench.folder / f"zombie-run-{name}", remote=bench.remote, at=index, send="SIGSTOP"
        )
        try:
            zombie.wait_until_stopped()
            retry = Driver(spec, bench.folder / f"retry-{name}", remote=bench.remote).finish()
            assert retry.code == 0, retry.output
            _equals_undisturbed(bench, name, table, f"{name} after the retry")
        finally:
            zombie.process.send_signal(signal.SIGCONT)
        woken = zombie.finish()

        assert woken.code == 0, woken.output
        assert woken.result is not None
        assert woken.result["already_applied"] is True
        _equals_undisturbed(bench, name, table, f"{name} after the zombie woke")


def _equals_undisturbed(bench: Bench, name: str, table: Path, label: str) -> None:
    done = bench.undisturbed[name].table
    assert rows_by_peer(table) == rows_by_peer(done), f"{label}: rows differ"
    app_id = f"kill-points-{name}"
    assert commits_with(table, app_id) == commits_with(done, app_id), f"{label}: applied not exactly once"
