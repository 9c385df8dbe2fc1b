"""Kind `convert`: convert a directory of Parquet files to a table in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from delta_core.errors import TableExistsError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobMetrics, JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.registry import JobKind
from delta_core.maintenance.convert.apply import (
    ConversionPlan,
    apply_conversion,
    plan_conversion,
    table_exists,
)
from delta_core.schema.json import type_from_name
from delta_core.schema.types import StructField, StructType
from delta_core.snapshot.snapshot import Snapshot

_PARAMS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "partition_by": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "type"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "type": {"type": "string", "minLength": 1, "description": "A type such as date or long."},
                },
            },
            "description": "The partition columns of the directories, in the order of the directories.",
        },
        "partition_strategy": {
            "enum": ["hive", "directory"],
            "description": "hive: `year=2024/month=5`, the default. directory: `2024/5`.",
        },
        "name": {"type": ["string", "null"]},
        "description": {"type": ["string", "null"]},
        "configuration": {
            "type": ["object", "null"],
            "additionalProperties": {"type": "string"},
            "description": "Properties of the table.",
        },
        "collect_stats": {
            "type": "boolean",
            "description": "Collect column statistics from the Parquet footers.",
        },
        "if_exists": {
            "enum": ["error", "ignore"],
            "description": "What to do when there is already a table. The default is error.",
        },
        "dry_run": {"type": "boolean", "description": "Plan only."},
    },
}


def run(spec: JobSpec, context: JobContext) -> JobResult:
    """Read the Parquet footers, and commit version 0."""
    if context.snapshot is not None:
        return _existing(spec, context)
    plan = _plan(spec.params, context)
    metrics = plan.to_json()
    predicted = {name: metrics[name] for name in ("files", "bytes", "rows")}
    output = {"partition_columns": metrics["partition_columns"]}
    context.reporter.emit("files.planned", files=metrics["files"], bytes=metrics["bytes"])
    if spec.params.get("dry_run", False):
        return context.succeeded(spec, predicted=predicted, output=output)
    try:
        committed = apply_conversion(plan, run=context.run.with_commit(context.commit_properties(spec)))
    except TableExistsError:
        if spec.params.get("if_exists") == "ignore" and Snapshot.exists(plan.store):
            return context.succeeded(spec, output={"reason": _EXISTS})
        raise
    applied = committed.already_applied
    return context.succeeded(
        spec,
        version_to=committed.version,
        commits=() if applied else (committed.version,),
        already_applied=applied,
        predicted=predicted,
        actual=predicted,
        metrics=JobMetrics(files_added=metrics["files"], bytes_added=metrics["bytes"], rows=metrics["rows"]),
        output=output,
    )


_EXISTS: Final = "There is already a table."


def _existing(spec: JobSpec, context: JobContext) -> JobResult:
    if spec.params.get("if_exists", "error") != "ignore":
        raise table_exists(context.require_store())
    return context.succeeded(spec, output={"reason": _EXISTS})


def _plan(params: Mapping[str, Any], context: JobContext) -> ConversionPlan:
    return plan_conversion(
        context.require_store(),
        partition_by=_partition_schema(params.get("partition_by") or ()),
        partition_strategy=params.get("partition_strategy", "hive"),
        name=params.get("name"),
        description=params.get("description"),
        configuration=params.get("configuration"),
        collect_stats=params.get("collect_stats", True),
        run=context.run,
    )


def _partition_schema(columns: Sequence[Mapping[str, str]]) -> StructType | None:
    if not columns:
        return None
    return StructType(
        tuple(
            StructField(name=column["name"], data_type=type_from_name(column["type"])) for column in columns
        )
    )


CONVERT: Final = JobKind(
    name="convert",
    run=run,
    help="Convert a directory of Parquet files to a table in place.",
    params_schema=_PARAMS,
    needs_table=False,
)
