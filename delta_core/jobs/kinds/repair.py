"""Kind `repair`: remove files from the table that are missing in the store. A dry run by default."""

from __future__ import annotations

from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.maintenance.fsck import apply_fsck, plan_fsck

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"dry_run": {"type": "boolean", "description": "Plan only; true unless given."}},
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Plan a repair, and commit it only when the parameter `dry_run` is false."""
    snapshot = context.require_snapshot()
    plan = plan_fsck(snapshot, run=context.run)
    context.reporter.emit("files.planned", files=len(plan.missing), bytes=plan.missing_bytes)
    output = {"plan": plan.to_json()}
    warnings = tuple(
        f"Cannot be read, and stays in the table: {file.path}: {file.reason}" for file in plan.unreadable[:20]
    )
    if spec.params.get("dry_run", True):
        return context.succeeded(spec, predicted=plan.predicted(), output=output, warnings=warnings)
    result = apply_fsck(snapshot, plan, run=context.run.with_commit(context.commit_properties(spec)))
    committed = result.committed
    return context.succeeded(
        spec,
        version_to=snapshot.version if committed is None else committed.version,
        commits=() if result.version is None else (result.version,),
        already_applied=committed is not None and committed.already_applied,
        predicted=plan.predicted(),
        actual={"files_removed": len(result.files_removed), "bytes_removed": result.bytes_removed},
        metrics=JobMetrics(files_removed=len(result.files_removed), bytes_removed=result.bytes_removed),
        output=output,
        warnings=warnings,
    )


REPAIR: Final = JobKind(
    name="repair",
    run=run,
    help="Remove files from the table that are missing in the store.",
    params_schema=_PARAMS,
)
