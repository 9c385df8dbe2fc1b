"""Running a `load` job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from delta_core.dml.commit_files import CommitMode
from delta_core.dml.table_change import TableDefinition
from delta_core.errors import ConfigurationError, ConstraintViolationError, JobFailedError, QualityGateError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from spark_jobs.failures import ViolationToken
from spark_jobs.loading.params import LoadParams, parse_params
from spark_jobs.loading.source import read_source
from spark_jobs.quality.gate import GateContext, QualityGate
from spark_jobs.session import get_session
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.writer.write import WriteRequest, write_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "load"


def run_load(spec: JobSpec, context: JobContext) -> JobResult:
    """Load the source's rows into the table under the contract, as one commit.

    Returns:
        The result; a failed one, with the gate's figures, when the rows do not pass the quality gate.

    Raises:
        SchemaMismatchError, ConstraintViolationError: the rows break the contract; nothing is visible.
        QualitySuiteError: the gate's suite cannot be checked; nothing was written.
        DeltaError: see `spark_jobs.write`.
    """
    params = parse_params(spec.params)
    token = ViolationToken()
    request = WriteRequest(
        mode=_mode(params),
        definition=TableDefinition(
            partition_by=params.partition_by,
            configuration=params.configuration if context.snapshot is None else None,
            merge_schema=params.merge_schema,
            overwrite_schema=params.overwrite_schema,
        ),
        replace_where=params.replace_where,
        schema=params.columns,
        constraints=params.constraints,
        properties=context.commit_properties(spec),
        job_id=context.job_id,
        kind=KIND,
    )
    frame = read_source(_session(context), params.source, types=params.columns, token=token)
    names = frame.columns
    context.reporter.emit("files.planned", total=len(params.source.uris))
    gate = _gate(params, spec, context, request)
    try:
        result = write_to(
            frame,
            context.require_store(),
            context.snapshot,
            request,
            reporter=context.reporter,
            observer=context.observer,
            before_commit=lambda: context.check_deadline(spec),
            gate=gate,
            clock=context.clock,
        )
    except QualityGateError as error:
        return _with_quality(context.failed(spec, error), gate)
    except JobFailedError as error:
        found = token.find(error.__cause__) if error.__cause__ is not None else None
        if found is None:
            raise
        position, row = found
        raise ConstraintViolationError(
            f"A value of the source's column {names[position] if position < len(names) else position!r} "
            "is not of the column's type.",
            cause=f"The value is {row}",
            fix="Correct the file; nothing of the load is visible",
        ) from None
    return _with_quality(result, gate)


def _gate(
    params: LoadParams, spec: JobSpec, context: JobContext, request: WriteRequest
) -> QualityGate | None:
    if params.quality is None:
        return None
    return QualityGate(
        params.quality,
        GateContext(
            store=context.require_store(),
            job_id=context.job_id,
            session=lambda: _session(context),
            txn=request.properties.txn,
            source=", ".join(params.source.uris),
            user_metadata=spec.user_metadata,
            storage_options=context.storage_options,
            replaces_rows=request.mode is not CommitMode.APPEND,
            reporter=context.reporter,
            clock=context.clock,
        ),
    )


def _with_quality(result: JobResult, gate: QualityGate | None) -> JobResult:
    """The result with what the gate decided, when it did."""
    if gate is None or gate.reports is None or result.already_applied:
        return result
    return replace(
        result,
        output={**result.output, "quality": gate.output},
        artefact_uris=(*result.artefact_uris, gate.reports.json, gate.reports.html),
    )


def _mode(params: LoadParams) -> CommitMode:
    if params.replace_where is None:
        return CommitMode(params.mode)
    if params.mode != "overwrite":
        raise ConfigurationError(
            f"replace_where does not go with mode {params.mode!r}.", fix="Use mode 'overwrite' with it."
        )
    return CommitMode.REPLACE_WHERE


def _session(context: JobContext) -> SparkSession:
    if isinstance(context.executor, SparkExecutor):
        return context.executor.spark
    return get_session(app_name=f"deltaward {KIND}")
