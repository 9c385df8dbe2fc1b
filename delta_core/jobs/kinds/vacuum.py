"""Kind `vacuum`: delete files that no retained version needs. A dry run by default."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.maintenance.vacuum import apply_vacuum, plan_vacuum

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "retention_hours": {
            "type": ["number", "null"],
            "minimum": 0,
            "description": "By default the table's retention, at least 168.",
        },
        "dry_run": {"type": "boolean", "description": "Plan only; true unless given."},
        "enforce_retention": {
            "type": "boolean",
            "description": "False, together with force, allows a shorter retention.",
        },
        "force": {"type": "boolean", "description": "Confirms enforce_retention=false."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Plan a vacuum, and delete files only when the parameter `dry_run` is false."""
    snapshot = context.require_snapshot()
    params = spec.params
    plan = plan_vacuum(
        snapshot,
        retention_hours=params.get("retention_hours"),
        enforce_retention=params.get("enforce_retention", True),
        force=params.get("force", False),
        clock=context.clock,
    )
    context.reporter.emit("files.planned", files=len(plan.files), bytes=plan.total_bytes)
    table_warnings = (
        *(f"{folder} is another Delta table: its files are not deleted." for folder in plan.inner_tables),
        *(f"Files that the table {uri} needs are not deleted." for uri in plan.outer_tables),
    )
    if params.get("dry_run", True):
        return context.succeeded(
            spec, predicted=plan.predicted(), output={"plan": plan.to_json()}, warnings=table_warnings
        )
    run = replace(
        context.run,
        executor=context.executor_for(spec, planned_bytes=0),
        commit=context.commit_properties(spec),
    )
    result = apply_vacuum(snapshot, plan, before_deleting=context.check_lease, run=run)
    return context.succeeded(
        spec,
        version_to=max((snapshot.version, *result.commits)),
        commits=result.commits,
        already_applied=result.already_applied,
        predicted=plan.predicted(),
        actual={
            "files_deleted": result.deleted_files,
            "bytes_deleted": result.deleted_bytes,
            "files_kept_after_all": len(result.kept),
        },
        metrics=JobMetrics(files_removed=result.deleted_files, bytes_removed=result.deleted_bytes),
        output={"plan": plan.to_json(), "kept": list(result.kept)},
        warnings=(
            *table_warnings,
            *(f"Planned but not deleted: {path}" for path in result.kept[:20]),
            *(f"Retained by {pin}" for pin in result.pins),
        ),
    )


VACUUM: Final = JobKind(
    name="vacuum", run=run, help="Delete files that no retained version needs.", params_schema=_PARAMS
)
