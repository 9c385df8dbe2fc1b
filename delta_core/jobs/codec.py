"""JobSpec and JobResult as JSON text.

A spec with an unknown field is refused, because a mistyped option must not be dropped silently. A result may
have unknown fields. Both are refused when their format is newer than `FORMAT_VERSION`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from delta_core.errors import DeltaError, InvalidJobSpecError, JobError
from delta_core.jobs.job_result import JobErrorInfo, JobMetrics, JobResult, JobStatus
from delta_core.jobs.job_spec import FORMAT_VERSION, Delivery, IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.json_schema import JsonSchema, violations
from delta_core.jobs.wire_schema import JOB_RESULT_SCHEMA, JOB_SPEC_SCHEMA
from delta_core.transaction.applied_commit import AppliedCommit

_METRIC_NAMES = tuple(JOB_RESULT_SCHEMA["properties"]["metrics"]["properties"])


def spec_to_json(spec: JobSpec) -> str:
    """The spec as one line of JSON.

    Raises:
        InvalidJobSpecError: `params` or `user_metadata` hold a value that JSON cannot represent.
    """
    key = spec.idempotency
    return _dump(
        {
            "format_version": spec.format_version,
            "kind": spec.kind,
            "table": {"uri": spec.table.uri, "id": spec.table.id},
            "params": dict(spec.params),
            "idempotency": None if key is None else _key_to_json(key),
            "lease": spec.lease,
            "deadline_ms": spec.deadline_ms,
            "engine": spec.engine,
            "storage_ref": spec.storage_ref,
            "trace_id": spec.trace_id,
            "result_uri": spec.result_uri,
            "user_metadata": dict(spec.user_metadata),
            "job_id": spec.job_id,
        },
        "job specification",
    )


def spec_from_json(text: str | bytes) -> JobSpec:
    """Parse and check a spec. `run_job` checks the parameters of the kind.

    Raises:
        InvalidJobSpecError: the document is not JSON, has a newer format, or a field is missing, unknown or
            of a wrong type.
    """
    document = _load(text, JOB_SPEC_SCHEMA, "job specification", InvalidJobSpecError)
    key, table = document.get("idempotency"), document["table"]
    return JobSpec(
        kind=document["kind"],
        table=TableRef(uri=table["uri"], id=table.get("id")),
        params=document.get("params", {}),
        idempotency=None if key is None else _key_from_json(key),
        lease=document.get("lease"),
        deadline_ms=document.get("deadline_ms"),
        engine=document.get("engine", "auto"),
        storage_ref=document.get("storage_ref"),
        trace_id=document.get("trace_id"),
        result_uri=document.get("result_uri"),
        user_metadata=document.get("user_metadata", {}),
        job_id=document.get("job_id", ""),
        format_version=document["format_version"],
    )


def result_to_json(result: JobResult) -> str:
    """The result as one line of JSON."""
    error, by = result.error, result.applied_by
    return _dump(
        {
            "format_version": result.format_version,
            "job_id": result.job_id,
            "kind": result.kind,
            "status": result.status.value,
            "version_from": result.version_from,
            "version_to": result.version_to,
            "commits": list(result.commits),
            "already_applied": result.already_applied,
            "applied_by": None
            if by is None
            else {"version": by.version, "user_metadata": dict(by.user_metadata)},
            "predicted": dict(result.predicted),
            "actual": dict(result.actual),
            "metrics": {name: getattr(result.metrics, name) for name in _METRIC_NAMES},
            "output": dict(result.output),
            "warnings": list(result.warnings),
            "error": None
            if error is None
            else {"code": error.code, "message": error.message, "retryable": error.retryable},
            "artefact_uris": list(result.artefact_uris),
        },
        "job result",
    )


def result_from_json(text: str | bytes) -> JobResult:
    """Parse and check a result.

    Raises:
        JobError: the document is not JSON, has a newer format, or a field is missing or of a wrong type.
    """
    document = _load(text, JOB_RESULT_SCHEMA, "job result", JobError)
    error, metrics = document.get("error"), document.get("metrics", {})
    by = document.get("applied_by")
    return JobResult(
        job_id=document["job_id"],
        kind=document["kind"],
        status=JobStatus(document["status"]),
        version_from=document.get("version_from"),
        version_to=document.get("version_to"),
        commits=tuple(document.get("commits", ())),
        already_applied=document.get("already_applied", False),
        applied_by=None
        if by is None
        else AppliedCommit(version=by["version"], user_metadata=by.get("user_metadata", {})),
        predicted=document.get("predicted", {}),
        actual=document.get("actual", {}),
        metrics=JobMetrics(**{name: metrics.get(name) for name in _METRIC_NAMES}),
        output=document.get("output", {}),
        warnings=tuple(document.get("warnings", ())),
        error=None
        if error is None
        else JobErrorInfo(code=error["code"], message=error["message"], retryable=error["retryable"]),
        artefact_uris=tuple(document.get("artefact_uris", ())),
        format_version=document["format_version"],
    )


def _key_to_json(key: IdempotencyKey) -> dict[str, Any]:
    document: dict[str, Any] = {"app_id": key.app_id, "version": key.version}
    if key.delivery is not None:
        document["delivery"] = {"app_id": key.delivery.app_id, "version": key.delivery.version}
    return document


def _key_from_json(document: Mapping[str, Any]) -> IdempotencyKey:
    delivery = document.get("delivery")
    return IdempotencyKey(
        app_id=document["app_id"],
        version=document.get("version", 0),
        delivery=None
        if delivery is None
        else Delivery(app_id=delivery["app_id"], version=delivery.get("version", 0)),
    )


def _dump(document: Mapping[str, Any], what: str) -> str:
    try:
        return json.dumps(document, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidJobSpecError(
            f"The {what} cannot be written as JSON.",
            cause=f"{error}.",
            fix="Use only strings, finite numbers, booleans, null, lists and objects.",
        ) from error


def _load(text: str | bytes, schema: JsonSchema, what: str, error_class: type[DeltaError]) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise error_class(
            f"The {what} is not JSON.", cause=f"{error}.", fix="Check the program that wrote the document."
        ) from error
    version = document.get("format_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise error_class(
            f"The {what} has format {version}.",
            cause=f"This version of deltaward knows formats up to {FORMAT_VERSION}.",
            fix="Upgrade deltaward where the job runs.",
        )
    problems = list(violations(document, schema))
    if problems:
        raise error_class(
            f"The {what} is not valid: {'; '.join(problems)}.",
            fix="See docs/job-spec.schema.json and docs/job-result.schema.json.",
        )
    result: dict[str, Any] = document
    return result
