"""What the jobs of a run left behind: whole results, those of failed ones too, which XCom never sees."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

from demo.dag_runs import RunRecord
from demo.layout import Layout, read_json

_WIDTH = 240


def job_result(layout: Layout, run: RunRecord, task_id: str) -> dict[str, Any] | None:
    """The newest result of a task; None when it left none."""
    found = None
    for path in sorted(
        (layout.runs / run.dag_id).rglob("result.json"), key=lambda path: path.stat().st_mtime
    ):
        spec = path.with_name("spec.json")
        if spec.exists() and read_json(spec)["trace_id"].startswith(f"{run.dag_id}/{run.run_id}/{task_id}/"):
            found = path
    return None if found is None else read_json(found)


def failure(layout: Layout, run: RunRecord) -> str | None:
    """Why the run's first failed task failed, in one line; None when no job says so."""
    for task in run.tasks:
        if task.state == "failed":
            error = (job_result(layout, run, task.task_id) or {}).get("error")
            if error:
                said = " ".join(str(error["message"]).split())
                return shorten(f"{error['code']}: {said}", width=_WIDTH)
    return None
