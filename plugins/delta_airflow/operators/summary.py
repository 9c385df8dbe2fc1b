"""The summary of a result for XCom, a small dictionary. The complete result stays in its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from delta_airflow.operators.job_summary import JobSummary
from delta_core.jobs import JobResult

MAX_PART_BYTES = 8 << 10
"""`predicted`, `actual` and `output` each go into XCom unshortened up to this size of their JSON text."""

MAX_MARKDOWN_CHARACTERS = 8 << 10
"""The maximum length of the report for people (`output["markdown"]`) in XCom. It is cut between two lines."""

_MAX_WARNINGS = 5


def summarize(result: JobResult, *, result_uri: str) -> JobSummary:
    """The XCom of a job: values on which downstream tasks depend, and the URI of the complete result."""
    output = dict(result.output)
    markdown = output.pop("markdown", None)
    parts = {"predicted": result.predicted, "actual": result.actual, "output": output}
    small = {name: _small(part) for name, part in parts.items()}
    summary: JobSummary = {
        "job_id": result.job_id,
        "kind": result.kind,
        "status": result.status.value,
        "version_from": result.version_from,
        "version_to": result.version_to,
        "commits": list(result.commits),
        "already_applied": result.already_applied,
        "applied_by": applied_by(result),
        "note": applied_note(result),
        "metrics": {name: value for name, value in asdict(result.metrics).items() if value is not None},
        "warnings": list(result.warnings[:_MAX_WARNINGS]),
        "result_uri": result_uri,
        "predicted": small["predicted"][0],
        "actual": small["actual"][0],
        "output": small["output"][0],
    }
    shortened = [name for name, (_, cut) in small.items() if cut]
    if isinstance(markdown, str):
        summary["markdown"], cut = bounded_markdown(markdown)
        if cut:
            shortened.insert(0, "markdown")
    if shortened:
        summary["shortened"] = shortened
    return summary


def applied_by(result: JobResult) -> dict[str, Any] | None:
    """The earlier commit that applied the job's work: its version, and its run as far as recorded."""
    by = result.applied_by
    if by is None:
        return None
    origin = {name: by.user_metadata.get(name) for name in ("dag", "task", "run", "try", "map_index")}
    return {"version": by.version, **{name: _shown(value) for name, value in origin.items()}}


def applied_note(result: JobResult) -> str | None:
    """A sentence that explains why the job did nothing; None if it did something."""
    if not result.already_applied:
        return None
    by = applied_by(result)
    if by is None:
        return "applied by a commit that is no longer in the log; nothing was done"
    run = "" if by["run"] is None else f" by run {by['run']}"
    return f"applied{run} at version {by['version']}; nothing was done"


def _shown(value: object) -> str | int | None:
    """A value from a commit, if it is a number or a short string; else None. Any writer may have set it."""
    return value if isinstance(value, int) or (isinstance(value, str) and len(value) <= 300) else None


def bounded_markdown(text: str, *, limit: int = MAX_MARKDOWN_CHARACTERS) -> tuple[str, bool]:
    """As many lines as fit into the limit, and whether any were cut. An open code block is closed."""
    if len(text) <= limit:
        return text, False
    kept = text[: max(0, text.rfind("\n", 0, limit))]
    if sum(line.startswith("```") for line in kept.splitlines()) % 2:
        kept += "\n```"
    return f"{kept}\n\nThis report was cut. The complete report is in the job's result.", True


def _small(part: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """(the part, whether it was shortened).

    A large part is reduced to its numbers, booleans and short strings, and to those one level deeper.
    """
    if len(json.dumps(part)) <= MAX_PART_BYTES:
        return dict(part), False
    scalars = _scalars(part)
    for name, value in part.items():
        if isinstance(value, Mapping) and (inner := _scalars(value)):
            scalars[name] = inner
    return (scalars if len(json.dumps(scalars)) <= MAX_PART_BYTES else {}), True


def _scalars(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in part.items()
        if value is None
        or isinstance(value, (bool, int, float))
        or (isinstance(value, str) and len(value) < 200)
    }
