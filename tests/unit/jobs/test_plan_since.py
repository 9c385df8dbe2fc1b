"""A plan that is given the last one asks the store for what changed since, and comes to the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import CommitInfo
from delta_core.clock import ManualClock
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.storage import open as opening
from delta_core.storage.local import LocalLogStore
from tests.support.counting_store import CountingStore, Requests
from tests.support.log_builder import LogBuilder

HOUR_MS = 3_600_000
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[CountingStore]:
    """The stores that jobs open: local ones, counted and treated as remote ones are."""
    stores: list[CountingStore] = []

    def opened(uri: str, options: Any, clock: Any) -> CountingStore:
        stores.append(CountingStore(uri, clock=clock))
        return stores[-1]

    monkeypatch.setitem(opening._OPENERS, None, opened)
    return stores


def plan(path: Path, *, since: Any = None, clock: Any = None, **params: Any) -> JobResult:
    spec = JobSpec(kind="plan", table=TableRef(uri=str(path)), params={"since": since, **params})
    result = run_job(spec, JobContext() if clock is None else JobContext(clock=clock))
    assert result.status is JobStatus.SUCCEEDED, result.error
    return result


def requests(stores: list[CountingStore]) -> Requests:
    (store,) = stores
    stores.clear()
    return store.requests


def table_of(path: Path, commits: int) -> None:
    for _ in range(commits):
        write_deltalake(path, ROWS, mode="append")


def test_an_unchanged_table_costs_one_listing(tmp_path: Path, asked: list[CountingStore]) -> None:
    table_of(tmp_path, 12)
    asked.clear()
    first = plan(tmp_path)
    asked.clear()
    again = plan(tmp_path, since=first.output["seen"])
    assert requests(asked).total == 1
    for name in ("decisions", "due", "compaction", "rules"):
        assert again.output[name] == first.output[name]
    assert (again.version_from, again.version_to) == (11, 11)
    # What a look hands on is enough for the next but one.
    asked.clear()
    plan(tmp_path, since=again.output["seen"])
    assert requests(asked).total == 1


def test_ten_new_commits_of_three_hundred(tmp_path: Path, asked: list[CountingStore]) -> None:
    log = LogBuilder(tmp_path).create().appends(289)
    DeltaTable(tmp_path).create_checkpoint()
    before = plan(tmp_path)
    log.appends(10)
    asked.clear()
    after = plan(tmp_path, since=before.output["seen"])
    assert requests(asked).total <= 16
    fresh = plan(tmp_path)
    assert _timeless(after.output["health"]) == _timeless(fresh.output["health"])
    assert after.output["health"]["version"] == 299


def test_what_was_done_before_the_last_look_is_remembered(tmp_path: Path) -> None:
    table_of(tmp_path, 3)
    DeltaTable(tmp_path).optimize.compact()
    done = plan(tmp_path)
    when = done.output["health"]["last_optimize_ms"]
    assert when is not None
    table_of(tmp_path, 2)
    assert plan(tmp_path, since=done.output["seen"]).output["health"]["last_optimize_ms"] == when


def test_a_vacuum_that_failed_is_none(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).create()
    for number, status in enumerate(("COMPLETED", "FAILED")):
        log.commit(
            CommitInfo(operation="VACUUM END", operation_parameters={"status": status}),
            time_ms=1_700_000_000_000 + number,
        )
    assert plan(tmp_path).output["health"]["last_vacuum_ms"] == 1_700_000_000_000


def test_tombstones_expire_on_a_table_that_does_not_change(tmp_path: Path) -> None:
    table_of(tmp_path, 5)
    DeltaTable(tmp_path).optimize.compact()
    clock = ManualClock(now_ms=DeltaTable(tmp_path).snapshot.timestamp_ms + HOUR_MS)
    first = plan(tmp_path, clock=clock)
    assert first.output["health"]["expired_tombstones"] == 0
    clock.sleep(8 * 24 * 3600)
    later = plan(tmp_path, since=first.output["seen"], clock=clock)
    fresh = plan(tmp_path, clock=clock)
    assert later.output["health"]["expired_tombstones"] == 5
    assert later.output["health"] == fresh.output["health"]
    assert later.output["decisions"] == fresh.output["decisions"]


@pytest.mark.parametrize("change", ["another table", "other rules", "a checkpoint"])
def test_a_look_that_no_longer_holds_is_made_anew(tmp_path: Path, change: str) -> None:
    path = tmp_path / "t"
    table_of(path, 4)
    seen = plan(path).output["seen"]
    rules: dict[str, Any] = {}
    if change == "another table":
        for file in sorted(path.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        table_of(path, 4)
    elif change == "a checkpoint":
        DeltaTable(path).create_checkpoint()
    else:
        rules = {"compaction_target_size_bytes": 1}
    again, fresh = plan(path, since=seen, rules=rules), plan(path, rules=rules)
    assert _timeless(again.output["health"]) == _timeless(fresh.output["health"])
    assert again.output["decisions"] == fresh.output["decisions"]


def test_what_is_no_look_is_refused(tmp_path: Path) -> None:
    table_of(tmp_path, 1)
    seen = plan(tmp_path).output["seen"]
    assert plan(tmp_path, since={**seen, "health": {**seen["health"], "of later": 1}}).output["seen"] == seen
    for broken in ({}, {**seen, "commit": None}, {**seen, "health": {"version": 1}}):
        spec = JobSpec(kind="plan", table=TableRef(uri=str(tmp_path)), params={"since": broken})
        error = run_job(spec, JobContext()).error
        assert error is not None
        assert error.code == "INVALID_CONFIGURATION"


def test_every_job_says_what_it_asked_of_stores(tmp_path: Path) -> None:
    table_of(tmp_path, 3)
    done = run_job(JobSpec(kind="optimize", table=TableRef(uri=str(tmp_path))), JobContext())
    store = LocalLogStore(tmp_path)
    (file,) = DeltaTable(tmp_path).snapshot.files.to_table(["path", "size_bytes"]).to_pylist()
    commit = store.head(f"_delta_log/{3:020}.json").size_bytes
    assert done.metrics.requests is not None
    assert done.metrics.requests >= 3 + 1 + 1
    assert done.metrics.bytes_written is not None
    assert done.metrics.bytes_written >= file["size_bytes"] + commit
    assert done.metrics.bytes_read is not None
    assert done.metrics.bytes_read > 0


def _timeless(health: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in health.items() if name != "observed_ms"}
