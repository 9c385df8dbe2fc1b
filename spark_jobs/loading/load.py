"""Running a `load` job."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from delta_core.data.row_plan import RowPlan
from delta_core.dml.commit_files import CommitMode
from delta_core.dml.metadata_update import TableDefinition, plan_metadata_update
from delta_core.errors import (
    ConstraintViolationError,
    DeltaError,
    JobFailedError,
    QualityGateError,
)
from delta_core.jobs import JobContext, JobResult, JobSpec
from delta_core.jobs.params.load import KIND, LoadParams, parse_load
from delta_core.run import Run
from spark_jobs.expressions.new_rows import given_checks
from spark_jobs.failures import ViolationToken
from spark_jobs.loading.contract import FittedBatch, adds_columns, drift_error, fit_to_contract
from spark_jobs.loading.delta_source import resolve_progress
from spark_jobs.loading.json_lines import DIFFERENT_CASE, NOT_AN_OBJECT
from spark_jobs.loading.shaping import deduplicated
from spark_jobs.loading.source import read_source, watch_source
from spark_jobs.loading.violations import Violation, find_violations, violations_error, without_rows
from spark_jobs.quality.gate import GateContext, QualityGate
from spark_jobs.quality.rejected import MistypedRows, divide_by_type
from spark_jobs.schema import from_spark
from spark_jobs.session import get_session
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.writer.commit_gate import OPEN_GATE
from spark_jobs.writer.write import WriteRequest, commit_mode, predicate_of, write_checks, write_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)


def run_load(spec: JobSpec, context: JobContext) -> JobResult:
    """Load the source's rows into the table, validated by the contract, as one commit.

    Returns:
        The result. It has failed, and nothing was committed, when the batch does not match its contract
        (`output["drift"]`), rows violate the contract (`output["violations"]`) or fail the quality gate.

    Raises:
        QualitySuiteError: the gate's suite cannot be evaluated; nothing was written.
        DeltaError: see `spark_jobs.write`.
    """
    params = parse_load(spec.params)
    params = replace(params, source=resolve_progress(params.source, spec, context))
    shows_rows = params.contract.show_rows
    token = ViolationToken()
    source, mistyped_rows = _read(params, context, token)
    batch = fit_to_contract(
        deduplicated(
            _session(context),
            source,
            params.deduplicate,
            table=context.snapshot,
            storage_options=context.storage_options,
        ),
        params.contract,
        table=None if context.snapshot is None or params.overwrite_schema else context.snapshot.schema,
        merge_schema=params.merge_schema,
    )
    if batch.report is not None and not batch.report.allowed:
        return context.failed(spec, drift_error(batch.report), output=batch.output())
    run = context.run.with_commit(context.commit_properties(spec))
    request = WriteRequest(
        mode=commit_mode(params.mode, params.replace_where, params.partition_overwrite_mode),
        definition=TableDefinition(
            partition_by=params.partition_by,
            configuration=params.configuration if context.snapshot is None else None,
            merge_schema=params.merge_schema or adds_columns(params.contract),
            overwrite_schema=params.overwrite_schema,
        ),
        replace_where=params.replace_where,
        schema=batch.schema,
        constraints=params.constraints,
        max_records_per_file=params.max_records_per_file,
        job_id=context.job_id,
        kind=KIND,
        show_rows=shows_rows,
        reads_table=params.deduplicate is not None and params.deduplicate.against_table,
        engine_io=params.engine_io,
        storage_options=context.storage_options,
    )
    context.reporter.emit("files.planned", total=len(params.source.uris))
    gate = _gate(params, spec, context, request, mistyped_rows, run)
    try:
        result = write_to(
            batch.frame,
            context.require_store(),
            context.snapshot,
            request,
            before_commit=lambda: context.check_deadline(spec),
            gate=OPEN_GATE if gate is None else gate,
            run=run,
        )
    except QualityGateError as error:
        return _with_output(_with_quality(context.failed(spec, error), gate), batch.output())
    except (ConstraintViolationError, JobFailedError) as error:
        mistyped = _mistyped(error, token, source.columns)
        if mistyped is None and not isinstance(error, ConstraintViolationError):
            raise error if shows_rows else without_rows(error) from None
        return _violations_result(spec, context, params, request, batch, mistyped or error)
    return _with_output(_with_quality(result, gate), batch.output())


def _mistyped(error: Exception, token: ViolationToken, names: Sequence[str]) -> DeltaError | None:
    """The error for an invalid value or line of the source, if Spark failed because of one."""
    mark = token.find(error.__cause__) if error.__cause__ is not None else None
    if mark is None:
        return None
    position, row = mark
    if position == NOT_AN_OBJECT:
        return ConstraintViolationError(
            "A line of the source is not exactly one JSON object.",
            cause=f"The line is {row}.",
            fix="Correct the file, or keep such lines with source.corrupt_column.",
        )
    if position == DIFFERENT_CASE:
        return ConstraintViolationError(
            "Lines of the source have fields that differ only in case.",
            cause=f"One of the lines is {row}.",
            fix="Write each field name in the same case everywhere.",
        )
    return ConstraintViolationError(
        f"A value of the source's column {names[position] if position < len(names) else position!r} "
        "is not of the column's type, or the type would round or truncate it.",
        cause=f"The value is {row}.",
        fix="Correct the file, or set exact_string: false in the contract. Nothing was committed.",
    )


def _violations_result(
    spec: JobSpec,
    context: JobContext,
    params: LoadParams,
    request: WriteRequest,
    batch: FittedBatch,
    error: DeltaError,
) -> JobResult:
    """The failed result of a load with violations: each violated rule with its row count and sample rows.

    When the source cannot be read again, the result contains only the error for the first row.
    """
    violations: tuple[Violation, ...] = ()
    try:
        context.check_deadline(spec)
        change = plan_metadata_update(
            context.snapshot,
            data_schema=request.schema or from_spark(batch.frame.schema),
            definition=request.definition,
            now_ms=context.clock.now_ms(),
        )
        plan = RowPlan.of(change.plan, given=batch.frame.columns, now_us=context.clock.now_ms() * 1000)
        violations = find_violations(
            _session(context),
            params.source,
            [*given_checks(plan), *write_checks(change, request, predicate_of(request, change.schema))],
            types=params.columns,
            plan=plan,
            exact=params.contract.exact_string,
            show_rows=request.show_rows,
            storage_options=context.storage_options,
        )
    except Exception as failure:  # in any case the load has failed because of the known error
        # Log only the type: the message may contain values of the source.
        _log.warning("The source could not be read again.", extra={"error": type(failure).__name__})
    if violations:
        error = violations_error(violations)
    elif not request.show_rows:
        error = without_rows(error)
    output = batch.output() | {"violations": [item.to_json() for item in violations]}
    return context.failed(spec, error, output=output)


def _read(
    params: LoadParams, context: JobContext, token: ViolationToken
) -> tuple[DataFrame, MistypedRows | None]:
    """The source's rows. Rows with mistyped values are returned separately when they go to the quarantine."""
    spark, types = _session(context), params.columns
    # After a group_by, the mistyped row of a group cannot be identified.
    casts_strings = params.source.format == "csv" and not params.source.group_by
    if casts_strings and params.quality is not None and params.quality.keeps_rejected:
        watched_source = watch_source(spark, params.source, types=types, exact=params.contract.exact_string)
        if watched_source.casts:
            return divide_by_type(
                watched_source.frame, casts=watched_source.casts, notes=watched_source.notes
            )
    rows = read_source(
        spark,
        params.source,
        types=types,
        token=token,
        exact=params.contract.exact_string,
        show_rows=params.contract.show_rows,
        storage_options=context.storage_options,
    )
    return rows, None


def _gate(
    params: LoadParams,
    spec: JobSpec,
    context: JobContext,
    request: WriteRequest,
    mistyped: MistypedRows | None,
    run: Run,
) -> QualityGate | None:
    if params.quality is None:
        return None
    # A contract that hides rows in errors also hides their values in reports.
    quality = params.quality if request.show_rows else replace(params.quality, samples=0)
    return QualityGate(
        quality,
        GateContext(
            store=context.require_store(),
            job_id=context.job_id,
            session=lambda: _session(context),
            txn=run.commit.txn,
            source=", ".join(params.source.uris),
            user_metadata=spec.user_metadata,
            storage_options=context.storage_options,
            replaces_rows=request.mode is not CommitMode.APPEND,
            reporter=run.progress,
            clock=run.clock,
        ),
        mistyped=mistyped,
    )


def _with_quality(result: JobResult, gate: QualityGate | None) -> JobResult:
    """The result with the gate's decision, if there is one."""
    if gate is None or gate.reports is None or result.already_applied:
        return result
    return replace(
        result,
        output={**result.output, "quality": gate.output},
        artefact_uris=(*result.artefact_uris, gate.reports.json, gate.reports.html),
    )


def _with_output(result: JobResult, output: Mapping[str, Any]) -> JobResult:
    return result if result.already_applied else replace(result, output={**result.output, **output})


def _session(context: JobContext) -> SparkSession:
    if isinstance(context.executor, SparkExecutor):
        return context.executor.spark
    return get_session(app_name=f"deltaward {KIND}")
