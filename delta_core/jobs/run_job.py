"""Running one job: from a spec to a result. Every error becomes a failed result."""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import uuid4

from delta_core.boundary import public, typed_error
from delta_core.errors import (
    ConfigurationError,
    DeltaError,
    InvalidJobSpecError,
    UnexpectedError,
)
from delta_core.execution.resources import ResourceUsage, resource_usage
from delta_core.jobs.applied import add_applied_by, applied_action
from delta_core.jobs.builtin import default_registry
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import FORMAT_VERSION, JobSpec
from delta_core.jobs.lease import run_under_lease
from delta_core.jobs.registry import JobKind, JobRegistry
from delta_core.leases.lease import lease_directory
from delta_core.storage.open import open_store, options_for

_LOGGER = logging.getLogger(__name__)

UNEXPECTED_ERROR_CODE = UnexpectedError.code
"""`JobResult.error.code` of an error that is not a DeltaError: a bug, or a failure of a library."""


@public
def run_job(spec: JobSpec, context: JobContext, *, registry: JobRegistry | None = None) -> JobResult:
    """Run a job and return its result. Never raises an Exception.

    The order is: check the spec, open the table, compare the table id, look up the idempotency key, work.
    When the table already has the key, the job succeeds without work (`already_applied`), and the result
    names the commit that did the work (`applied_by`). When the spec names a lease, the lease is acquired
    before the work, and then the table is loaded and the key is looked up again.

    Args:
        spec: the job.
        context: executor, clock, storage options and progress sink of the job.
        registry: the job kinds; by default the built-in ones and those of installed extensions.

    Returns:
        The result. Its `status` is `unknown` when the job cannot determine whether a commit landed.
    """
    context = replace(context, job_id=spec.job_id or str(uuid4()))
    before = resource_usage(clock=context.clock)
    context.reporter.emit("job.started", kind=spec.kind, table_uri=spec.table.uri)
    try:
        kind = (registry or default_registry()).get(spec.kind)
        _check(spec, kind, context)
        context = _open(spec, kind, context)
        result = _applied_before_work(spec, kind, context) or _run(spec, kind, context)
        result = add_applied_by(result, spec, context)
    except DeltaError as error:
        result = context.failed(spec, error)
    except Exception as error:
        _LOGGER.exception("A job failed with an unexpected error.", extra={"job_id": context.job_id})
        result = context.failed(spec, typed_error(error, doing=f"the {spec.kind} job"))
    result = _with_resource_usage(result, before, resource_usage(clock=context.clock))
    context.reporter.emit("job.finished", status=result.status.value, version_to=result.version_to)
    return result


def _check(spec: JobSpec, kind: JobKind, context: JobContext) -> None:
    if spec.format_version > FORMAT_VERSION:
        raise InvalidJobSpecError(
            f"The job specification has format {spec.format_version}.",
            cause=f"This version of deltaward knows formats up to {FORMAT_VERSION}.",
            fix="Upgrade deltaward where the job runs.",
        )
    if spec.lease is not None:
        _check_lease_name(spec.lease)
    kind.check_params(spec.params)
    context.check_deadline(spec)


def _check_lease_name(name: str) -> None:
    try:
        lease_directory(name)
    except ConfigurationError as error:
        raise InvalidJobSpecError(error.problem, cause=error.cause, fix=error.fix) from error


def _open(spec: JobSpec, kind: JobKind, context: JobContext) -> JobContext:
    options = options_for(spec.table.uri, context.storage_options)
    store = open_store(spec.table.uri, storage_options=options, clock=context.clock)
    context = replace(context, store=store)
    if not kind.opens_table:
        return context
    context = context.with_table(spec, required=kind.needs_table)
    if context.snapshot is None:
        context.reporter.emit("snapshot.loaded", version=None)
    return context


def _applied_before_work(spec: JobSpec, kind: JobKind, context: JobContext) -> JobResult | None:
    if not kind.opens_table:
        return None
    result = _applied(spec, kind, context)
    context.reporter.emit("idempotency.checked", already_applied=result is not None)
    return result


def _applied(spec: JobSpec, kind: JobKind, context: JobContext) -> JobResult | None:
    action = applied_action(spec, context.snapshot, context) if kind.commits else None
    return None if action is None else context.succeeded(spec, already_applied=True)


def _run(spec: JobSpec, kind: JobKind, context: JobContext) -> JobResult:
    if spec.lease is None:
        return kind.run(spec, context)

    def work(held: JobContext) -> JobResult:
        # The former holder of the lease may have done this job already.
        latest = held.with_table(spec, required=kind.needs_table) if kind.opens_table else held
        return _applied(spec, kind, latest) or kind.run(spec, latest)

    return run_under_lease(spec, context, work)


def _with_resource_usage(result: JobResult, before: ResourceUsage, after: ResourceUsage) -> JobResult:
    return replace(
        result,
        metrics=replace(
            result.metrics,
            cpu_seconds=round(after.cpu_seconds - before.cpu_seconds, 6),
            wall_seconds=round(after.monotonic_seconds - before.monotonic_seconds, 6),
            peak_rss_bytes=max(after.peak_rss_bytes, result.metrics.peak_rss_bytes or 0),
            requests=after.store.requests - before.store.requests,
            bytes_read=after.store.bytes_read - before.store.bytes_read,
            bytes_written=after.store.bytes_written - before.store.bytes_written,
        ),
    )
