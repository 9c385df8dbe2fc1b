"""`python -m spark_jobs.main`: a spec in, a result out, an exit code that tells the truth."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.clock import ManualClock
from delta_core.execution.sinks import event_from_json
from delta_core.jobs.codec import spec_to_json
from delta_core.jobs.job_result import JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.maintenance.vacuum.plan import plan_vacuum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.main import EVENT_PREFIX, main
from tests.support.drivers import REPOSITORY, start_driver
from tests.support.quality import IN_SET, NOT_NULL, expect, quality
from tests.support.spark import files_below, rows_of
from tests.support.waiting import comes_true


def load_spec(table: Path, source: Path, **params: object) -> JobSpec:
    return JobSpec(
        kind="load",
        table=TableRef(uri=str(table)),
        params={"source": {"format": "parquet", "uris": [str(source)]}, "mode": "append", **params},
        idempotency=IdempotencyKey(app_id="test", version=1),
    )


@pytest.fixture(name="source")
def source_fixture(tmp_path: Path) -> Path:
    path = tmp_path / "source.parquet"
    pq.write_table(pa.table({"id": pa.array(range(100), pa.int64()), "p": ["a", "b"] * 50}), path)
    return path


def test_a_bad_spec_exits_2_with_a_result(tmp_path: Path) -> None:
    spec, result = tmp_path / "spec.json", tmp_path / "out" / "result.json"
    spec.write_text('{"format_version": 99}')
    assert main(["--spec", str(spec), "--result", str(result)]) == 2
    assert json.loads(result.read_text())["error"]["code"] == "INVALID_JOB_SPEC"
    assert [path.name for path in result.parent.iterdir()] == ["result.json"]


@pytest.mark.parametrize("text", ['{"aws_region": "s3cr3t"}', "aws_region=s3cr3t"])
def test_storage_options_come_by_the_environment_and_are_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    spec, result = tmp_path / "spec.json", tmp_path / "result.json"
    spec.write_text(spec_to_json(JobSpec(kind="checkpoint", table=TableRef(uri="gs://bucket/t"))))
    monkeypatch.setenv("DELTAWARD_STORAGE_OPTIONS", text)
    assert main(["--spec", str(spec), "--result", str(result)]) == 1
    error = json.loads(result.read_text())["error"]
    assert error["code"] == "INVALID_CONFIGURATION"
    assert "'aws_region'" in error["message"]
    assert "s3cr3t" not in result.read_text()
    assert "DELTAWARD_STORAGE_OPTIONS" not in os.environ


def test_storage_options_that_cannot_be_read_are_a_bad_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, result = tmp_path / "spec.json", tmp_path / "result.json"
    spec.write_text(spec_to_json(JobSpec(kind="checkpoint", table=TableRef(uri="gs://bucket/t"))))
    monkeypatch.setenv("DELTAWARD_STORAGE_OPTIONS", '{"s3cr3t')
    assert main(["--spec", str(spec), "--result", str(result)]) == 2
    assert "s3cr3t" not in result.read_text()


def test_a_job_without_a_table_exits_1_without_a_jvm(tmp_path: Path) -> None:
    driver = start_driver(JobSpec(kind="checkpoint", table=TableRef(uri=str(tmp_path / "none"))), tmp_path)
    assert driver.wait() == 1
    result = driver.result()
    assert result is not None
    assert result.error is not None
    assert result.error.code == "TABLE_NOT_FOUND"


@pytest.mark.soak
def test_a_load_tells_its_progress_and_applies_once(tmp_path: Path, source: Path) -> None:
    spec = load_spec(tmp_path / "table", source, partition_by=["p"])
    driver = start_driver(spec, tmp_path / "first")
    assert driver.wait() == 0, driver.log()
    result = driver.result()
    assert result is not None
    assert (result.status, result.commits, result.metrics.rows) == (JobStatus.SUCCEEDED, (0,), 100)
    lines = [
        line.removeprefix(EVENT_PREFIX) for line in driver.log().splitlines() if line.startswith(EVENT_PREFIX)
    ]
    events = [event for line in lines if (event := event_from_json(line)) is not None]
    assert [event.name for event in events] == [
        "job.started", "snapshot.loaded", "idempotency.checked", "files.planned", "data.writing",
        "data.written", "stats.collected", "commit.before", "commit.after", "job.finished",
    ]  # fmt: skip
    again = start_driver(spec, tmp_path / "again")
    assert again.wait() == 0
    repeated = again.result()
    assert repeated is not None
    assert repeated.already_applied
    assert len(rows_of(tmp_path / "table")) == 100


@pytest.mark.soak
def test_a_killed_driver_leaves_the_table_as_it_was_and_a_retry_succeeds(
    tmp_path: Path, source: Path
) -> None:
    table = tmp_path / "table"
    spec = load_spec(table, source)
    driver = start_driver(spec, tmp_path / "killed", signal_at="data.written")
    assert driver.wait() == -signal.SIGKILL
    assert driver.result() is None
    assert not (table / "_delta_log").exists()
    left = {path for path in files_below(table) if path.endswith(".parquet")}
    assert left
    assert start_driver(spec, tmp_path / "retry").wait() == 0
    assert len(rows_of(table)) == 100
    snapshot = Snapshot.load(open_store(str(table)))
    later = ManualClock(time.time_ns() // 1_000_000 + 3_600_000)
    plan = plan_vacuum(snapshot, retention_hours=0, enforce_retention=False, force=True, clock=later)
    assert {file.path for file in plan.files} == left


@pytest.mark.slow
def test_a_load_that_native_rules_judge_needs_neither_great_expectations_nor_pandas(
    tmp_path: Path, source: Path
) -> None:
    suite = quality(expect(NOT_NULL, column="id"), expect(IN_SET, column="p", value_set=["a"]))
    spec = load_spec(tmp_path / "table", source, quality={**suite, "on_failure": "quarantine"})
    driver = start_driver(spec, tmp_path / "lean", program="tests.support.lean_driver")
    assert driver.wait() == 0, driver.log()
    assert len(rows_of(tmp_path / "table")) == 50


@pytest.mark.slow
def test_sigterm_cleans_up_and_writes_no_result(tmp_path: Path, source: Path) -> None:
    table = tmp_path / "table"
    slow = {"id": "if(id % 10 = 3, cast(reflect('java.lang.Thread', 'sleep', 600L) as bigint), id)"}
    spec = load_spec(table, source)
    params = {**spec.params, "source": {**spec.params["source"], "select": slow}}
    spec = JobSpec(kind="load", table=spec.table, params=params)
    driver = start_driver(spec, tmp_path / "terminated")
    assert comes_true(lambda: "data.writing" in driver.log())
    os.kill(driver.process.pid, signal.SIGTERM)
    assert driver.wait() == 143, driver.log()
    assert driver.result() is None
    assert files_below(table) == set()


def test_a_driver_whose_parent_dies_ends(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, os\n"
        "child = subprocess.Popen([sys.executable, '-c', "
        "'from spark_jobs.watchdog import exit_with_parent; import time;"
        " exit_with_parent(interval_seconds=0.05); print(1, flush=True); time.sleep(60)'],"
        " stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    pid = int(parent.stdout)
    assert comes_true(lambda: not _alive(pid))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_importing_the_package_loads_no_spark() -> None:
    code = (
        "import sys, spark_jobs, spark_jobs.job_kinds, spark_jobs.cli\n"
        "print([name for name in ('pyspark', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
