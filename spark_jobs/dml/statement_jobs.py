"""Running `delete` and `update` jobs."""

from __future__ import annotations

from delta_core.jobs import JobContext, JobResult, JobSpec
from delta_core.jobs.params import delete, update
from spark_jobs.dml.delete import delete_from
from spark_jobs.dml.job import session_of
from spark_jobs.dml.statement import StatementRequest
from spark_jobs.dml.update import update_in


def run_delete(spec: JobSpec, context: JobContext) -> JobResult:
    """Delete the rows that meet the condition as one commit.

    Raises:
        DeltaError: see `spark_jobs.delete`.
    """
    params = delete.parse_delete(spec.params)
    snapshot = context.require_snapshot()
    return delete_from(
        session_of(context, delete.KIND),
        snapshot,
        _request(params, context),
        before_commit=lambda: context.check_deadline(spec),
        run=context.run.with_commit(context.commit_properties(spec)),
    )


def run_update(spec: JobSpec, context: JobContext) -> JobResult:
    """Update the rows that meet the condition as one commit.

    Raises:
        DeltaError: see `spark_jobs.update`.
    """
    params = update.parse_update(spec.params)
    snapshot = context.require_snapshot()
    return update_in(
        session_of(context, update.KIND),
        snapshot,
        params.set,
        _request(params, context),
        before_commit=lambda: context.check_deadline(spec),
        run=context.run.with_commit(context.commit_properties(spec)),
    )


def _request(params: delete.DeleteParams | update.UpdateParams, context: JobContext) -> StatementRequest:
    return StatementRequest(
        where=params.where,
        alias=params.target_alias,
        engine_io=params.engine_io,
        storage_options=context.storage_options,
        allowed_roots=params.allowed_root_uris,
        job_id=context.job_id,
    )
