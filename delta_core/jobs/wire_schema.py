"""The JSON schemas of JobSpec and JobResult. The codec checks against them, and `docs/` publishes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from delta_core.execution.engine import ENGINES
from delta_core.jobs.job_result import JobStatus
from delta_core.jobs.job_spec import FORMAT_VERSION

if TYPE_CHECKING:
    from delta_core.jobs.registry import JobKind

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description}


def _optional_string(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": description}


def _optional_count(description: str) -> dict[str, Any]:
    return {"type": ["integer", "null"], "minimum": 0, "description": description}


_FORMAT: Final[dict[str, Any]] = {
    "type": "integer",
    "minimum": 1,
    "description": "Format of this document. A reader refuses a newer format than it knows.",
}

JOB_SPEC_SCHEMA: Final[dict[str, Any]] = {
    "$schema": _DIALECT,
    "title": "JobSpec",
    "description": "One job, as passed to a runner. It holds no secret.",
    "type": "object",
    "additionalProperties": False,
    "required": ["format_version", "kind", "table"],
    "properties": {
        "format_version": {**_FORMAT, "const": FORMAT_VERSION},
        "kind": _string("Name of the job kind in the registry."),
        "table": {
            "type": "object",
            "additionalProperties": False,
            "required": ["uri"],
            "properties": {
                "uri": _string("The table's URI or path."),
                "id": _optional_string("The metaData.id that the table at the URI must have."),
            },
        },
        "params": {"type": "object", "description": "The parameters of the kind."},
        "idempotency": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": ["app_id"],
            "properties": {
                "app_id": _string("Identifies the work, not the try: a retry has the same app_id."),
                "version": {"type": "integer", "minimum": 0, "description": "The step of the work."},
                "delivery": {
                    "type": ["object", "null"],
                    "additionalProperties": False,
                    "required": ["app_id"],
                    "properties": {
                        "app_id": _string("The appId of the txn that records the named work."),
                        "version": {
                            "type": "integer",
                            "minimum": 0,
                            "description": "The number of the delivery.",
                        },
                    },
                    "description": "The delivery of named work that the job repeats. The job does nothing "
                    "when the table has recorded a later delivery.",
                },
            },
            "description": "The txn action that makes the job apply once.",
        },
        "lease": _optional_string("Name of the lease that the job needs."),
        "deadline_ms": _optional_count("Epoch milliseconds after which no commit starts."),
        "engine": {"enum": list(ENGINES), "description": "Where the data work runs."},
        "storage_ref": _optional_string("Connection or profile that the driver resolves; never a secret."),
        "trace_id": _optional_string("Connects the logs of one run."),
        "result_uri": _optional_string("URI to write the result to."),
        "user_metadata": {"type": "object", "description": "Provenance for commitInfo.userMetadata."},
        "job_id": {"type": "string", "description": "Identifies this run; generated when empty."},
    },
}
"""JSON Schema of a JobSpec's envelope."""

_METRICS: Final = (
    ("files_added", "integer"),
    ("files_removed", "integer"),
    ("bytes_added", "integer"),
    ("bytes_removed", "integer"),
    ("rows", "integer"),
    ("requests", "integer"),
    ("bytes_read", "integer"),
    ("bytes_written", "integer"),
    ("cpu_seconds", "number"),
    ("wall_seconds", "number"),
    ("peak_rss_bytes", "integer"),
)

JOB_RESULT_SCHEMA: Final[dict[str, Any]] = {
    "$schema": _DIALECT,
    "title": "JobResult",
    "description": "The outcome of one JobSpec.",
    "type": "object",
    "required": ["format_version", "job_id", "kind", "status"],
    "properties": {
        "format_version": {**_FORMAT, "const": FORMAT_VERSION},
        "job_id": {"type": "string"},
        "kind": {"type": "string"},
        "status": {
            "enum": [status.value for status in JobStatus],
            "description": "unknown: it is unknown whether the commit landed.",
        },
        "version_from": _optional_count("The version that the job read; null when the table did not exist."),
        "version_to": _optional_count("The last version that the job committed, or version_from."),
        "commits": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "already_applied": {"type": "boolean"},
        "applied_by": {
            "type": ["object", "null"],
            "required": ["version"],
            "properties": {
                "version": {"type": "integer", "minimum": 0, "description": "The version of the commit."},
                "user_metadata": {"type": "object", "description": "commitInfo.userMetadata of the commit."},
            },
            "description": "The commit that already did the work; null when it is not in the log.",
        },
        "predicted": {"type": "object", "description": "The metrics of the plan, per kind."},
        "actual": {"type": "object", "description": "The metrics of the execution, per kind."},
        "metrics": {
            "type": "object",
            "properties": {name: {"type": [kind, "null"], "minimum": 0} for name, kind in _METRICS},
        },
        "output": {"type": "object", "description": "The result of the kind."},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "error": {
            "type": ["object", "null"],
            "required": ["code", "message", "retryable"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "retryable": {"type": "boolean"},
            },
        },
        "artefact_uris": {"type": "array", "items": {"type": "string"}},
    },
}
"""JSON Schema of a JobResult. Other fields are allowed and ignored."""


def job_spec_document(kinds: Iterable[JobKind]) -> dict[str, Any]:
    """The published schema: the envelope, and for each kind the schema of its `params`."""
    ordered = sorted(kinds, key=lambda kind: kind.name)
    return {
        **JOB_SPEC_SCHEMA,
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]},
                "then": {"properties": {"params": {"$ref": f"#/$defs/{kind.name}"}}},
            }
            for kind in ordered
        ],
        "$defs": {kind.name: {"description": kind.help, **kind.params_schema} for kind in ordered},
    }


def job_result_document() -> dict[str, Any]:
    """The published schema of a JobResult."""
    return dict(JOB_RESULT_SCHEMA)
