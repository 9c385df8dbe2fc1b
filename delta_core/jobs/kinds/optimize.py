"""Kind `optimize`: put small files together."""

from __future__ import annotations

from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.maintenance.compaction import apply_compaction, plan_compaction

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "predicate": {"type": ["string", "null"], "description": "Over partition columns only."},
        "target_size_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Size of a new file; delta.targetFileSize when null.",
        },
        "min_file_size_bytes": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "Files below this are small; three quarters of the target when null.",
        },
        "compression": {"enum": ["snappy", "zstd", "none"], "description": "Codec of the new files."},
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Plan, then apply; nothing to do commits nothing."""
    snapshot = context.require_snapshot()
    params = spec.params
    plan = plan_compaction(
        snapshot,
        predicate=params.get("predicate"),
        target_size_bytes=params.get("target_size_bytes"),
        min_file_size_bytes=params.get("min_file_size_bytes"),
    )
    context.reporter.emit("files.planned", files=plan.num_files, bytes=plan.total_bytes, bins=len(plan.bins))
    if params.get("dry_run", False):
        return context.succeeded(spec, predicted=plan.predicted(), output={"plan": plan.to_json()})
    result = apply_compaction(
        snapshot,
        plan,
        executor=context.executor_for(spec, planned_bytes=plan.total_bytes),
        properties=context.commit_properties(spec),
        progress=context.reporter,
        compression=params.get("compression", "snappy"),
        observer=context.observer,
        clock=context.clock,
    )
    already = result.committed is not None and result.committed.already_applied
    figures = result.metrics
    return context.succeeded(
        spec,
        version_to=snapshot.version if result.committed is None else result.committed.version,
        commits=() if result.version is None else (result.version,),
        already_applied=already,
        predicted=plan.predicted(),
        actual={
            "files_removed": figures["numFilesRemoved"],
            "files_added": figures["numFilesAdded"],
            "bytes_removed": figures["filesRemoved"]["totalSize"],
            "bytes_added": figures["filesAdded"]["totalSize"],
            "partitions": figures["partitionsOptimized"],
            "rows": result.rows,
        },
        metrics=JobMetrics(
            files_added=figures["numFilesAdded"],
            files_removed=figures["numFilesRemoved"],
            bytes_added=figures["filesAdded"]["totalSize"],
            bytes_removed=figures["filesRemoved"]["totalSize"],
            rows=result.rows,
        ),
        output={"metrics": dict(figures)},
    )


OPTIMIZE: Final = JobKind(
    name="optimize", run=run, help="Put small files together; no row changes.", params_schema=_PARAMS
)
