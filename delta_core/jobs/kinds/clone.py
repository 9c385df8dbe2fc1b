"""Kind `clone`: make the job's table a clone of a version of another table."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import ALLOWED_ROOT_URIS, JobKind
from delta_core.jobs.timestamps import parse_timestamp_ms
from delta_core.maintenance.clone.apply import ClonePlan, apply_clone, plan_clone
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store, options_for

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["source_uri"],
    "properties": {
        "source_uri": {"type": "string", "minLength": 1, "description": "The table to clone."},
        "shallow": {"type": "boolean", "description": "Refer to the source's files instead of copying them."},
        "version": {"type": ["integer", "null"], "minimum": 0, "description": "Version of the source."},
        "timestamp": {
            "type": ["string", "integer", "null"],
            "description": "Time of the source's version: ISO 8601 (UTC without a zone) or epoch "
            "milliseconds.",
        },
        "allowed_root_uris": ALLOWED_ROOT_URIS,
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Plan a clone, copy the missing files, and commit. An empty plan commits nothing."""
    plan = _plan(spec, context)
    predicted = {
        "files_added": len(plan.adds),
        "files_removed": 0 if plan.removed is None else plan.removed.num_rows,
        "files_copied": len(plan.copies),
    }
    output = {"source_version": plan.source.version, "is_empty": plan.is_empty}
    context.reporter.emit("files.planned", files=len(plan.adds), copies=len(plan.copies))
    if spec.params.get("dry_run", False):
        return context.succeeded(spec, predicted=predicted, output=output)
    run = replace(
        context.run,
        commit=context.commit_properties(spec),
        executor=context.executor_for(spec, planned_bytes=sum(add.size_bytes for add in plan.adds)),
    )
    result = apply_clone(plan, run=run)
    committed = result.committed
    version_before = context.snapshot.version if context.snapshot is not None else None
    return context.succeeded(
        spec,
        version_to=version_before if committed is None else committed.version,
        commits=() if result.version is None else (result.version,),
        already_applied=committed is not None and committed.already_applied,
        predicted=predicted,
        actual={
            "files_added": result.files_added,
            "files_removed": result.files_removed,
            "files_copied": result.files_copied,
            "bytes_copied": result.bytes_copied,
        },
        metrics=JobMetrics(
            files_added=result.files_added,
            files_removed=result.files_removed,
            bytes_added=result.bytes_copied,
        ),
        output=output,
    )


def _plan(spec: JobSpec, context: JobContext) -> ClonePlan:
    params, options, clock = spec.params, context.storage_options, context.clock
    timestamp = params.get("timestamp")
    source = Snapshot.load(
        open_store(
            params["source_uri"], storage_options=options_for(params["source_uri"], options), clock=clock
        ),
        version=params.get("version"),
        timestamp_ms=None if timestamp is None else parse_timestamp_ms(timestamp),
        clock=clock,
    )
    return plan_clone(
        source,
        context.require_store(),
        shallow=params.get("shallow", False),
        run=replace(context.run, allowed_roots=context.allowed_roots(spec)),
    )


CLONE: Final = JobKind(
    name="clone",
    run=run,
    help="Make the table a clone of a version of another table.",
    params_schema=_PARAMS,
    needs_table=False,
)
