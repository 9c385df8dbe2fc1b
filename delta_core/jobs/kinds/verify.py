"""Kind `verify`: named checks. A failed check fails the job; the report lists every check."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delta_core.errors import ConfigurationError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import ALLOWED_ROOT_URIS, JobKind
from delta_core.maintenance.verify import VerificationReport, verify_commits, verify_table
from delta_core.snapshot.snapshot import Snapshot

_TABLE_PARAMS: Final = ("version_to", "version_from", "expected_rows", "sample_footers")

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "commits": {
            "type": ["array", "null"],
            "items": {"type": "integer", "minimum": 0},
            "description": "Check the files that these commits added, and that commits without data change "
            "kept every row. Nothing else of the table is checked. Null checks the whole table.",
        },
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
        "allowed_root_uris": ALLOWED_ROOT_URIS,
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Run the checks, and report each check.

    An empty list of commits makes no request.
    """
    commits = spec.params.get("commits")
    if commits is not None:
        return _result(spec, context, _verify_commits(spec, context, commits))
    context = context.with_table(spec)
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
        run=replace(context.run, allowed_roots=context.allowed_roots(spec)),
    )
    return _result(spec, context, report)


def _verify_commits(spec: JobSpec, context: JobContext, commits: list[int]) -> VerificationReport:
    given = [name for name in _TABLE_PARAMS if spec.params.get(name) is not None]
    if given:
        raise ConfigurationError(
            f"The parameter {', '.join(given)} cannot be combined with commits.",
            cause="Single commits are checked, not a version of the table.",
            fix="Leave out the parameter or commits.",
        )
    run = replace(context.run, allowed_roots=context.allowed_roots(spec))
    return verify_commits(context.require_store(), commits, run=run)


def _result(spec: JobSpec, context: JobContext, report: VerificationReport) -> JobResult:
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
    help="Check commits or the whole table, or compare the rows of two versions.",
    params_schema=_PARAMS,
    commits=False,
    opens_table=False,
)
