"""Operators run inline on real tables, which the deltalake package writes and reads back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk.exceptions import AirflowFailException
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.assets import table_asset
from delta_airflow.errors import JobCancelledError
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.run_state import RunPhase
from delta_airflow.operators.checkpoint import DeltaCheckpointOperator
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.vacuum import DeltaVacuumOperator
from delta_airflow.runners.inline import InlineRunner
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.errors import JobFailedError
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef


@pytest.fixture
def table(tmp_path: Path, airflow_connection: Path) -> Path:
    """Three versions of four rows each."""
    path = tmp_path / "flights"
    for month in (1, 2, 3):
        peer_write(str(path), pa.table({"month": [month] * 4, "delay": [1.0, 2.0, 3.0, 4.0]}), mode="append")
    return path


def context(*, try_number: int = 1, task_id: str = "t") -> Any:
    instance = SimpleNamespace(dag_id="d", task_id=task_id, run_id="r", map_index=-1, try_number=try_number)
    return {"ti": instance, "logical_date": datetime(2026, 1, 1, tzinfo=UTC), "outlet_events": {}}


def arguments(table: Path) -> dict[str, Any]:
    return {"task_id": "t", "table_uri": str(table)}


def rows(table: Path, version: int | None = None) -> list[Any]:
    found = PeerTable(str(table), version=version).to_pyarrow_table()
    return sorted(found.to_pylist(), key=str)


def test_describe_reads_the_table(table: Path) -> None:
    value = DeltaJobOperator(**arguments(table), kind="describe").execute(context())
    assert value["output"]["num_files"] == 3
    assert value["version_to"] == 2
    assert DeltawardHook().read_result(value["result_uri"]).output["num_files"] == 3


def test_optimize_keeps_every_row_and_says_who_did_it(table: Path) -> None:
    before = rows(table)
    asset = table_asset(str(table))
    where = context()
    where["outlet_events"][asset] = SimpleNamespace(extra={})
    value = DeltaOptimizeOperator(**arguments(table), outlets=[asset]).execute(where)
    assert value["commits"] == [3]
    assert rows(table) == before
    assert len(PeerTable(str(table)).file_uris()) == 1
    (latest,) = PeerTable(str(table)).history(1)
    assert json.loads(latest["userMetadata"])["dag"] == "d"
    assert where["outlet_events"][asset].extra == {
        "kind": "optimize",
        "version_from": 2,
        "version": 3,
        "commits": [3],
    }


def test_a_second_try_finds_the_work_done(table: Path) -> None:
    DeltaOptimizeOperator(**arguments(table)).execute(context())
    peer_write(str(table), pa.table({"month": [4], "delay": [1.0]}), mode="append")
    again = DeltaOptimizeOperator(**arguments(table)).execute(context(try_number=2))
    assert again["already_applied"] is True
    assert again["commits"] == []
    assert PeerTable(str(table)).version() == 4


def test_vacuum_plans_and_deletes_nothing_unless_told_to(table: Path) -> None:
    DeltaOptimizeOperator(**arguments(table)).execute(context())
    before = sorted(table.rglob("*.parquet"))
    value = DeltaVacuumOperator(**arguments(table)).execute(context())
    assert sorted(table.rglob("*.parquet")) == before
    assert value["commits"] == []
    assert PeerTable(str(table)).version() == 3


def test_a_retention_below_the_protected_one_is_refused_for_good(table: Path) -> None:
    subject = DeltaVacuumOperator(**arguments(table), retention_hours=1, dry_run=False)
    with pytest.raises(AirflowFailException, match="RETENTION_TOO_SHORT"):
        subject.execute(context())


def test_a_checkpoint_is_written(table: Path) -> None:
    DeltaCheckpointOperator(**arguments(table)).execute(context())
    assert (table / "_delta_log" / f"{2:020d}.checkpoint.parquet").exists()
    assert (table / "_delta_log" / "_last_checkpoint").exists()


def test_restore_plans_first_and_commits_when_told_to(table: Path) -> None:
    wanted = rows(table, version=0)
    planned = DeltaRestoreOperator(**arguments(table), version=0).execute(context())
    assert planned["commits"] == []
    assert PeerTable(str(table)).version() == 2
    done = DeltaRestoreOperator(**arguments(table), version="0", dry_run="False").execute(context())
    assert done["commits"] == [3]
    assert rows(table) == wanted


def test_a_table_that_is_not_there_fails_for_good(tmp_path: Path, airflow_connection: Path) -> None:
    with pytest.raises(AirflowFailException, match="TABLE_NOT_FOUND"):
        DeltaCheckpointOperator(**arguments(tmp_path / "nothing")).execute(context())


def test_another_table_at_the_same_place_is_refused(table: Path) -> None:
    with pytest.raises(AirflowFailException, match="not the table of this job"):
        DeltaCheckpointOperator(**arguments(table), table_id="someone-else").execute(context())


def run_inline(table: Path, directory: Path, *, cancel_at: str) -> None:
    runner = InlineRunner(directory=RunDirectory(path=directory))

    def on_event(event: ProgressEvent) -> None:
        if event.name == cancel_at:
            runner.cancel()

    spec = JobSpec(
        kind="optimize",
        table=TableRef(uri=str(table)),
        idempotency=IdempotencyKey(app_id="a"),
        job_id="j1",
    )
    runner.run(spec, on_event=on_event)


@pytest.mark.parametrize("event", ["job.started", "snapshot.loaded", "files.planned", "commit.before"])
def test_a_cancelled_job_stops_before_its_commit(table: Path, tmp_path: Path, event: str) -> None:
    with pytest.raises(JobCancelledError):
        run_inline(table, tmp_path, cancel_at=event)
    assert PeerTable(str(table)).version() == 2
    assert RunDirectory(path=tmp_path).read_state().phase is RunPhase.CANCELLED


def test_a_job_cancelled_after_its_commit_tells_of_it(table: Path, tmp_path: Path) -> None:
    run_inline(table, tmp_path, cancel_at="commit.after")
    state = RunDirectory(path=tmp_path).read_state()
    assert state.phase is RunPhase.SUCCEEDED
    assert RunDirectory(path=tmp_path).read_result(job_id="j1").commits == (3,)


def test_a_failure_is_kept_in_the_result_and_the_state(tmp_path: Path) -> None:
    with pytest.raises(JobFailedError):
        run_inline(tmp_path / "nothing", tmp_path, cancel_at="")
    directory = RunDirectory(path=tmp_path)
    assert directory.read_state().error_code == "JOB_FAILED"
    error = directory.read_result(job_id="j1").error
    assert error is not None
    assert error.code == "TABLE_NOT_FOUND"
