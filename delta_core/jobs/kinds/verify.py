"""Kind `verify`: named checks; a failed one fails the job, and the report says which."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.maintenance.verify import verify_table
from delta_core.snapshot.snapshot import Snapshot

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "version_to": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "The version to check; the newest when null.",
        },
        "version_from": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "A version that must hold the same rows.",
        },
        "expected_rows": {"type": ["integer", "null"], "minimum": 0},
        "sample_footers": {"type": "integer", "minimum": 0},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Check, and report every check whether it passed or not."""
    snapshot = context.require_snapshot()
    params = spec.params
    version = params.get("version_to")
    if version is not None and version != snapshot.version:
        snapshot = Snapshot.load(context.require_store(), version=version, clock=context.clock)
        context = replace(context, snapshot=snapshot)
    report = verify_table(
        snapshot,
        compare_with_version=params.get("version_from"),
        expected_rows=params.get("expected_rows"),
        sample_footers=params.get("sample_footers", 20),
        clock=context.clock,
    )
    output = {"report": report.to_json()}
    actual = {
        "checks": len(report.checks),
        "failed": [check.name for check in report.checks if not check.passed],
    }
    if report.passed:
        return context.succeeded(spec, actual=actual, output=output)
    return context.failed(spec, report.error(), actual=actual, output=output)


VERIFY: Final = JobKind(
    name="verify",
    run=run,
    help="Check the table, and that two versions hold the same rows.",
    params_schema=_PARAMS,
    commits=False,
)
