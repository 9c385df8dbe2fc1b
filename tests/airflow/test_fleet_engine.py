from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_airflow.fleet_engine import job_runner
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.provenance import TaskIdentity
from delta_core import write_deltalake
from delta_core.errors import JobFailedError
from delta_core.jobs import JobContext, JobSpec, JobStatus, TableRef, run_job

pytestmark = pytest.mark.airflow

TASK = TaskIdentity(dag_id="fleet", task_id="apply", run_id="r", map_index=3)


class _Runner:
    """A runner that runs a job inline, and remembers what it was given."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.specs: list[JobSpec] = []
        self.cancelled = False

    def run(self, spec: JobSpec, *, on_event: Any) -> Any:
        self.specs.append(spec)
        if self.error is not None:
            raise self.error
        return run_job(JobSpec(kind=spec.kind, table=spec.table), JobContext())

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def spec(tmp_path: Path) -> JobSpec:
    for number in range(3):
        write_deltalake(str(tmp_path / "t"), pa.table({"id": [number]}), mode="append")
    return JobSpec(kind="optimize", table=TableRef(uri=str(tmp_path / "t")), engine="spark")


def test_only_jobs_for_spark_use_the_runner_of_the_connection(
    spec: JobSpec, airflow_connection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = DeltawardHook()
    run = job_runner(hook, TASK)
    refused = run(spec, JobContext())
    assert refused.status is JobStatus.FAILED
    assert refused.error is not None
    assert "runner is inline" in refused.error.message
    described = JobSpec(kind="describe", table=spec.table)
    assert run(described, JobContext()).status is JobStatus.SUCCEEDED

    monkeypatch.setitem(hook.__dict__, "settings", _on_spark(hook))
    runner = _Runner()
    monkeypatch.setattr(hook, "get_runner", lambda *, directory: runner)
    done = run(spec, JobContext())
    assert (done.status, done.actual["files_removed"]) == (JobStatus.SUCCEEDED, 3)
    (given,) = runner.specs
    assert given.storage_ref == "airflow:deltaward_default"
    assert given.job_id
    assert "/fleet/r/apply/3/" in (given.result_uri or "")
    failing = _Runner(JobFailedError("The driver failed."))
    monkeypatch.setattr(hook, "get_runner", lambda *, directory: failing)
    failed = run(spec, JobContext())
    assert (failed.status, failing.cancelled) == (JobStatus.FAILED, True)


def _on_spark(hook: DeltawardHook) -> Any:
    return SimpleNamespace(work_dir=hook.settings.work_dir, runner="spark_connect")
