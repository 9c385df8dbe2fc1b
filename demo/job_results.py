"""The complete results of a run's jobs, including those of failed jobs, which are not in XCom."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

from demo.dag_runs import RunRecord
from demo.layout import Layout, read_json

_WIDTH = 240


def job_result(layout: Layout, run: RunRecord, task_id: str) -> dict[str, Any] | None:
    """The newest result of a task; None if it has no result."""
    newest = None
    for path in sorted(
        (layout.runs / run.dag_id).rglob("result.json"), key=lambda path: path.stat().st_mtime
    ):
        spec = path.with_name("spec.json")
        if spec.exists() and read_json(spec)["trace_id"].startswith(f"{run.dag_id}/{run.run_id}/{task_id}/"):
            newest = path
    return None if newest is None else read_json(newest)


def failure(layout: Layout, run: RunRecord) -> str | None:
    """The error of the run's first failed task in one line; None if no job recorded an error."""
    for task in run.tasks:
        if task.state == "failed":
            error = (job_result(layout, run, task.task_id) or {}).get("error")
            if error:
                message = " ".join(str(error["message"]).split())
                return shorten(f"{error['code']}: {message}", width=_WIDTH)
    return None
