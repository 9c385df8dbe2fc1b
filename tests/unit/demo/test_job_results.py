"""What is read of the files that jobs leave."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from demo.dag_runs import RunRecord, TaskRecord
from demo.job_results import failure, job_result
from demo.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(home=tmp_path)


def leave(layout: Layout, run_id: str, task_id: str, *, attempt: int, **result: Any) -> None:
    path = layout.runs / "etl" / run_id / task_id / "-1" / f"try-{attempt}-x"
    path.mkdir(parents=True)
    trace_id = f"etl/{run_id}/{task_id}/-1/{attempt}"
    (path / "spec.json").write_text(json.dumps({"trace_id": trace_id}))
    (path / "result.json").write_text(json.dumps(result))
    os.utime(path / "result.json", (attempt, attempt))


def run(run_id: str, **states: str) -> RunRecord:
    tasks = tuple(TaskRecord(task_id=name, map_index=-1, state=state) for name, state in states.items())
    return RunRecord(dag_id="etl", run_id=run_id, state="failed", tasks=tasks)


def test_the_newest_result_of_the_task_is_read(layout: Layout) -> None:
    leave(layout, "one", "load", attempt=2, output={"rows": 2})
    leave(layout, "one", "load", attempt=1, output={"rows": 1})
    leave(layout, "one", "load_more", attempt=3, output={"rows": 3})
    leave(layout, "other", "load", attempt=4, output={"rows": 4})
    assert job_result(layout, run("one"), "load") == {"output": {"rows": 2}}
    assert job_result(layout, run("one"), "verify") is None
    assert job_result(Layout(home=layout.home / "elsewhere"), run("one"), "load") is None


def test_a_failure_is_told_in_one_short_line(layout: Layout) -> None:
    message = "A value is wrong.\nCause: " + "long " * 100
    leave(layout, "one", "load", attempt=1, error={"code": "CONSTRAINT_VIOLATION", "message": message})
    told = failure(layout, run("one", extract="success", load="failed", verify="upstream_failed"))
    assert told is not None
    assert told.startswith("CONSTRAINT_VIOLATION: A value is wrong. Cause: long long")
    assert len(told) <= 240


def test_a_run_without_a_failed_job_has_no_reason(layout: Layout) -> None:
    leave(layout, "one", "load", attempt=1, error=None)
    assert failure(layout, run("one", load="success")) is None
    assert failure(layout, run("one", load="failed")) is None
    assert failure(layout, run("one", extract="failed")) is None
