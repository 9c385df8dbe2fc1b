"""Running a `merge` job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import ConfigurationError, InvalidJobSpecError, JobFailedError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from spark_jobs.dml.clauses import MergeAction, MergeClauses, clauses_from_json
from spark_jobs.dml.merge import KIND, MergeRequest, merge_into
from spark_jobs.failures import ViolationToken
from spark_jobs.loading.contract import (
    CONTRACT_SCHEMA,
    adds_columns,
    contract_of,
    drift_error,
    fit_to_contract,
)
from spark_jobs.loading.delta_source import resolve_progress
from spark_jobs.loading.shaping import DEDUPLICATE_SCHEMA, deduplicated, parse_deduplicate
from spark_jobs.loading.source import read_source
from spark_jobs.loading.source_params import SOURCE_SCHEMA, parse_source
from spark_jobs.loading.violations import without_rows
from spark_jobs.schema import from_spark
from spark_jobs.session import get_session
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.writer.checks import Check, named_checks, not_null_checks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.loading.contract import FittedBatch


def _clauses(values: str | None, *actions: MergeAction) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "action": {"enum": [action.value for action in actions]},
        "condition": {"type": ["string", "null"], "minLength": 1},
    }
    if values is not None:
        properties[values] = {"type": ["object", "null"], "description": "column: Spark SQL expression"}
    return {
        "type": "array",
        "description": "the first clause whose condition is true applies to a row",
        "items": {
            "type": "object",
            "required": ["action"],
            "additionalProperties": False,
            "properties": properties,
        },
    }


MERGE_SCHEMA: Final = {
    "type": "object",
    "required": ["source", "on"],
    "additionalProperties": False,
    "properties": {
        "source": SOURCE_SCHEMA,
        "on": {"type": "string", "minLength": 1, "description": "Spark SQL condition, such as t.id = s.id"},
        "target_alias": {"type": "string", "minLength": 1, "description": "alias of the table; default t"},
        "source_alias": {"type": "string", "minLength": 1, "description": "alias of the source; default s"},
        "matched": _clauses("set", MergeAction.UPDATE, MergeAction.UPDATE_ALL, MergeAction.DELETE),
        "not_matched": _clauses("values", MergeAction.INSERT, MergeAction.INSERT_ALL),
        "not_matched_by_source": _clauses("set", MergeAction.UPDATE, MergeAction.DELETE),
        "contract": CONTRACT_SCHEMA,
        "deduplicate": DEDUPLICATE_SCHEMA,
        "merge_schema": {"type": "boolean"},
    },
}


def run_merge(spec: JobSpec, context: JobContext) -> JobResult:
    """Merge the source's rows into the table as one commit.

    Returns:
        The result. It has failed, with `output["drift"]`, when the source violates its contract.

    Raises:
        InvalidJobSpecError: the clauses are not valid.
        DeltaError: see `merge_into`.
    """
    params = spec.params
    clauses = _parsed_clauses(params)
    contract = contract_of(params.get("contract"))
    snapshot = context.require_snapshot()
    properties = context.commit_properties(spec)
    merge_schema = bool(params.get("merge_schema", False)) or adds_columns(contract)
    spark = _session(context)
    token = ViolationToken()
    source = resolve_progress(parse_source(params["source"]), spec, context)
    rows = read_source(
        spark,
        source,
        types=contract.columns,
        token=token,
        exact=contract.exact_string,
        show_rows=contract.show_rows,
    )
    rows = deduplicated(spark, rows, parse_deduplicate(params.get("deduplicate")), table=snapshot)
    # The source may have other columns than the table, so only the contract defines its columns.
    batch = fit_to_contract(rows, contract, table=None, merge_schema=merge_schema)
    if batch.report is not None and not batch.report.allowed:
        return context.failed(spec, drift_error(batch.report), output=batch.output())
    try:
        return merge_into(
            batch.frame,
            snapshot,
            MergeRequest(
                on=params["on"],
                clauses=clauses,
                target_alias=params.get("target_alias", "t"),
                source_alias=params.get("source_alias", "s"),
                merge_schema=merge_schema,
                source_checks=_source_checks(batch, contract.constraints),
                show_rows=contract.show_rows,
                properties=properties,
                job_id=context.job_id,
            ),
            reporter=context.reporter,
            observer=context.observer,
            before_commit=lambda: context.check_deadline(spec),
            clock=context.clock,
        )
    except JobFailedError as error:
        # Spark's error message may quote a row of a file.
        raise error if contract.show_rows else without_rows(error) from None


def _source_checks(batch: FittedBatch, constraints: tuple[tuple[str, str], ...]) -> list[Check]:
    schema = batch.schema or from_spark(batch.frame.schema)
    return [*not_null_checks(schema), *named_checks(constraints, schema)]


def _parsed_clauses(params: Any) -> MergeClauses:
    try:
        return clauses_from_json(params)
    except ConfigurationError as error:
        raise InvalidJobSpecError(error.problem, cause=error.cause, fix=error.fix) from error


def _session(context: JobContext) -> SparkSession:
    if isinstance(context.executor, SparkExecutor):
        return context.executor.spark
    return get_session(app_name=f"deltaward {KIND}")
