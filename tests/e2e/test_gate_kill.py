"""A gated load killed between staging, validating, quarantine and publishing, and run again.

Whatever the moment, each row of the batch ends in exactly one of the table and the quarantine, and what
the killed driver left is in no version of the table and on vacuum's list. The tables are read by deltalake.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from delta_core import write_deltalake
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.maintenance.vacuum.plan import plan_vacuum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.connect_server import ConnectServer
from tests.support.driver_runs import Driver, DriverRun, commits_with
from tests.support.quality import BETWEEN, NOT_NULL, expect, quality
from tests.support.soak import drawn
from tests.support.spark import FEW_PARTITIONS

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

APP = "gate-kill"
BAD = {7, 11, 90}
PATIENCE_SECONDS = 1200
"""A driver also imports Great Expectations, which alone takes half a minute on a busy machine."""
WINDOWS = {
    "quality.validating": "staged, not validated",
    "quality.validated": "validated, nothing committed",
    "quarantine.after": "in quarantine, not published",
    "commit.after": "published",
}


def _rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    values = [None if n == 7 else -1 if n in BAD else n for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "month": pa.array([n % 3 for n in numbers], pa.int32()),
            "value": pa.array(values, pa.int64()),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A source, a server, and the events of a load that nothing disturbs."""

    folder: Path
    remote: str
    events: tuple[str, ...]

    def table(self, name: str) -> Path:
        path = self.folder / name
        write_deltalake(str(path), _rows(1000, 10), partition_by=["month"])
        return path

    def spec(self, table: Path) -> JobSpec:
        suite = quality(
            expect(NOT_NULL, column="value"),
            expect(BETWEEN, column="value", min_value=0),
            on_failure="quarantine",
        )
        source = {"format": "parquet", "uris": [str(self.folder / "source.parquet")]}
        return JobSpec(
            kind="load",
            table=TableRef(uri=str(table)),
            params={"source": source, "quality": suite},
            idempotency=IdempotencyKey(app_id=APP),
        )

    def run(self, table: Path, name: str, *, at: str | None = None, send: str = "SIGKILL") -> Driver:
        index = None if at is None else self.events.index(at)
        return Driver(self.spec(table), self.folder / name, remote=self.remote, at=index, send=send)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("gate-kill")
    pq.write_table(_rows(0, 100), folder / "source.parquet")
    with ConnectServer.start(directory=folder, master="local[2]", conf=FEW_PARTITIONS) as server:
        bench = Bench(folder=folder, remote=server.url, events=())
        table = bench.table("undisturbed")
        run = bench.run(table, "undisturbed-run").finish(timeout_seconds=PATIENCE_SECONDS)
        _is_applied_once(run, table, "undisturbed")
        yield Bench(folder=folder, remote=server.url, events=run.events)


def _ids(table: Path) -> Counter[int]:
    if not (table / "_delta_log").is_dir():
        return Counter()
    return Counter(DeltaTable(str(table)).to_pyarrow_table().column("id").to_pylist())


def _aside(table: Path) -> Path:
    return table / "_deltaward" / "quarantine"


def _is_applied_once(run: DriverRun, table: Path, label: str) -> None:
    assert run.code == 0, f"{label}: {run.output}"
    good = Counter(n for n in range(100) if n not in BAD)
    assert _ids(table) == good + Counter(range(1000, 1010)), label
    assert _ids(_aside(table)) == Counter(BAD), label
    assert len(commits_with(table, APP)) == 1, label


def _unreferenced(table: Path) -> set[str]:
    """Data files that no version of the table names, straight from the disk and deltalake."""
    live: set[str] = set()
    for version in range(DeltaTable(str(table)).version() + 1):
        live |= {
            uri.split(f"/{table.name}/", 1)[1] for uri in DeltaTable(str(table), version=version).file_uris()
        }
    found = {path.relative_to(table).as_posix() for path in table.rglob("*.parquet")}
    return {path for path in found - live if not path.startswith(("_delta_log/", "_deltaward/"))}


def _listed_by_vacuum(table: Path) -> set[str]:
    snapshot = Snapshot.load(open_store(str(table)))
    plan = plan_vacuum(snapshot, retention_hours=0, enforce_retention=False, force=True)
    return {file.path for file in plan.files}


# Where all is published and the key alone tells; of the windows before, one.
TRIED = [*drawn(list(WINDOWS)[:-1], usual=1), "commit.after"]


@pytest.mark.parametrize("event", TRIED)
def test_a_killed_load_run_again_puts_each_row_in_one_place(bench: Bench, event: str) -> None:
    name = event.replace(".", "-")
    table = bench.table(name)
    before = _ids(table)

    killed = bench.run(table, f"{name}-killed", at=event).finish(timeout_seconds=PATIENCE_SECONDS)

    assert killed.code == -signal.SIGKILL, killed.output
    published = event == "commit.after"
    assert (_ids(table) == before) is not published, WINDOWS[event]
    reached = event in ("quarantine.after", "commit.after")
    assert _ids(_aside(table)) == (Counter(BAD) if reached else Counter()), WINDOWS[event]
    left = _unreferenced(table)
    assert bool(left) is not published, WINDOWS[event]
    assert left <= _listed_by_vacuum(table), WINDOWS[event]

    again = bench.run(table, f"{name}-again").finish(timeout_seconds=PATIENCE_SECONDS)

    _is_applied_once(again, table, WINDOWS[event])
    assert again.result is not None
    assert again.result["already_applied"] is published


@pytest.mark.parametrize("event", drawn(["quarantine.before", "commit.before"], usual=1))
def test_a_load_that_wakes_after_its_retry_changes_nothing(bench: Bench, event: str) -> None:
    name = f"zombie-{event.replace('.', '-')}"
    table = bench.table(name)
    zombie = bench.run(table, f"{name}-first", at=event, send="SIGSTOP")
    try:
        zombie.wait_until_stopped()
        _is_applied_once(
            bench.run(table, f"{name}-retry").finish(timeout_seconds=PATIENCE_SECONDS), table, name
        )
    finally:
        zombie.process.send_signal(signal.SIGCONT)
    woken = zombie.finish(timeout_seconds=PATIENCE_SECONDS)

    _is_applied_once(DriverRun(code=0, events=(), result=None, output=""), table, f"{name} woken")
    assert woken.result is not None, woken.output
    # Stopped before the quarantine's commit it finds another try's there, and may simply be run again.
    assert woken.result["already_applied"] or woken.result["error"]["retryable"], woken.output
