"""Kind `restore`: restore the table to an earlier version. A dry run by default."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.jobs.timestamps import parse_timestamp_ms
from delta_core.maintenance.restore import apply_restore, diff_rows, plan_restore
from delta_core.maintenance.restore.apply import require_version
from delta_core.maintenance.restore.compare_rows import MAX_SAMPLE_ROWS

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "version": {"type": ["integer", "null"], "minimum": 0},
        "timestamp": {
            "type": ["string", "integer", "null"],
            "description": "ISO 8601 (UTC without a zone) or epoch milliseconds.",
        },
        "dry_run": {"type": "boolean", "description": "Plan only; true unless given."},
        "ignore_missing_files": {
            "type": "boolean",
            "description": "Leave out files that are missing in the store.",
        },
        "expected_version": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "The table's version at the time of the plan. The job fails when there are "
            "newer versions.",
        },
        "diff": {
            "type": "string",
            "enum": ["files", "rows"],
            "description": "Detail of the plan. `rows` reads the files that the restore adds and removes. "
            "Default `files`.",
        },
        "sample_rows": {
            "type": "integer",
            "minimum": 0,
            "description": "With `rows`: how many lost and returned rows the plan shows. The default and the "
            "maximum are 20.",
        },
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Plan a restore, and commit it only when the parameter `dry_run` is false."""
    snapshot = context.require_snapshot()
    params = spec.params
    timestamp = params.get("timestamp")
    expected = params.get("expected_version")
    if expected is not None:
        require_version(snapshot, expected)
    plan = plan_restore(
        snapshot,
        version=params.get("version"),
        timestamp_ms=None if timestamp is None else parse_timestamp_ms(timestamp),
        run=context.run,
    )
    context.reporter.emit("files.planned", added=len(plan.added), removed=len(plan.removed))
    if params.get("diff", "files") == "rows":
        rows = diff_rows(
            snapshot, plan, sample_rows=params.get("sample_rows", MAX_SAMPLE_ROWS), run=context.run
        )
        plan = replace(plan, row_diff=rows)
    output = {
        "table_id": plan.table_id,
        "target_version": plan.target_version,
        "is_empty": plan.is_empty,
        "markdown": plan.to_markdown(),
        "plan": plan.to_json(),
    }
    if params.get("dry_run", True):
        warnings = (f"Missing files: {len(plan.missing)}.",) if plan.missing else ()
        return context.succeeded(spec, predicted=plan.predicted(), output=output, warnings=warnings)
    result = apply_restore(
        snapshot,
        plan,
        ignore_missing_files=params.get("ignore_missing_files", False),
        by_timestamp=timestamp is not None,
        expected_version=expected,
        run=context.run.with_commit(context.commit_properties(spec)),
    )
    committed = result.committed
    return context.succeeded(
        spec,
        version_to=snapshot.version if committed is None else committed.version,
        commits=() if result.version is None else (result.version,),
        already_applied=committed is not None and committed.already_applied,
        predicted=plan.predicted(),
        actual={
            "files_added": result.files_added,
            "files_removed": result.files_removed,
            "bytes_added": result.bytes_added,
            "bytes_removed": result.bytes_removed,
        },
        metrics=JobMetrics(
            files_added=result.files_added,
            files_removed=result.files_removed,
            bytes_added=result.bytes_added,
            bytes_removed=result.bytes_removed,
        ),
        output=output,
        warnings=tuple(f"Missing file, left out: {path}" for path in plan.missing[:20]),
    )


RESTORE: Final = JobKind(
    name="restore", run=run, help="Restore the table to an earlier version or time.", params_schema=_PARAMS
)
