"""Running a `merge` job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.errors import JobFailedError
from delta_core.jobs import JobContext, JobResult, JobSpec
from delta_core.jobs.params.merge import KIND, parse_merge
from spark_jobs.dml.clauses import clauses_of
from spark_jobs.dml.merge import MergeRequest, merge_into
from spark_jobs.expressions.checks import Check, named_checks, not_null_checks
from spark_jobs.failures import ViolationToken
from spark_jobs.loading.contract import adds_columns, drift_error, fit_to_contract
from spark_jobs.loading.delta_source import resolve_progress
from spark_jobs.loading.shaping import deduplicated
from spark_jobs.loading.source import read_source
from spark_jobs.loading.violations import without_rows
from spark_jobs.schema import from_spark
from spark_jobs.session import get_session
from spark_jobs.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.loading.contract import FittedBatch


def run_merge(spec: JobSpec, context: JobContext) -> JobResult:
    """Merge the source's rows into the table as one commit.

    Returns:
        The result. It has failed, with `output["drift"]`, when the source violates its contract.

    Raises:
        InvalidJobSpecError: the parameters are not valid.
        DeltaError: see `merge_into`.
    """
    params = parse_merge(spec.params)
    contract = params.contract
    snapshot = context.require_snapshot()
    run = context.run.with_commit(context.commit_properties(spec))
    merge_schema = params.merge_schema or adds_columns(contract)
    spark = session_of(context, KIND)
    token = ViolationToken()
    source = resolve_progress(params.source, spec, context)
    rows = read_source(
        spark,
        source,
        types=contract.columns,
        token=token,
        exact=contract.exact_string,
        show_rows=contract.show_rows,
        storage_options=context.storage_options,
    )
    rows = deduplicated(
        spark, rows, params.deduplicate, table=snapshot, storage_options=context.storage_options
    )
    # The source may have other columns than the table, so only the contract defines its columns.
    batch = fit_to_contract(rows, contract, table=None, merge_schema=merge_schema)
    if batch.report is not None and not batch.report.allowed:
        return context.failed(spec, drift_error(batch.report), output=batch.output())
    try:
        return merge_into(
            batch.frame,
            snapshot,
            MergeRequest(
                on=params.on,
                clauses=clauses_of(params),
                target_alias=params.target_alias,
                source_alias=params.source_alias,
                merge_schema=merge_schema,
                source_checks=_source_checks(batch, contract.constraints),
                show_rows=contract.show_rows,
                engine_io=params.engine_io,
                storage_options=context.storage_options,
                job_id=context.job_id,
            ),
            before_commit=lambda: context.check_deadline(spec),
            run=run,
        )
    except JobFailedError as error:
        # Spark's error message may quote a row of a file.
        raise error if contract.show_rows else without_rows(error) from None


def _source_checks(batch: FittedBatch, constraints: tuple[tuple[str, str], ...]) -> list[Check]:
    schema = batch.schema or from_spark(batch.frame.schema)
    return [*not_null_checks(schema), *named_checks(constraints, schema)]


def session_of(context: JobContext, kind: str) -> SparkSession:
    """The session of a job of a kind: that of its executor, or a new one."""
    if isinstance(context.executor, SparkExecutor):
        return context.executor.spark
    return get_session(app_name=f"deltaward {kind}")
