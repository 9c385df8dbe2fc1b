"""The JSON form of JobSpec and JobResult: what the codec checks and what `docs/` publishes."""

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
    "description": "Format of this document. A reader refuses one newer than it knows.",
}

JOB_SPEC_SCHEMA: Final[dict[str, Any]] = {
    "$schema": _DIALECT,
    "title": "JobSpec",
    "description": "One job, as handed to whoever runs it. It holds no secret.",
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
                "id": _optional_string("The metaData.id that must still be at the URI."),
            },
        },
        "params": {"type": "object", "description": "The kind's own parameters."},
        "idempotency": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": ["app_id"],
            "properties": {
                "app_id": _string("Names the work, not the try: a retry has the same one."),
                "version": {"type": "integer", "minimum": 0, "description": "The step of the work."},
                "delivery": {
                    "type": ["object", "null"],
                    "additionalProperties": False,
                    "required": ["app_id"],
                    "properties": {
                        "app_id": _string("The txn by which the table knows the work."),
                        "version": {"type": "integer", "minimum": 0, "description": "Which delivery it is."},
                    },
                    "description": "The delivery of named work that is done once more; a table that has "
                    "recorded a later one takes nothing.",
                },
            },
            "description": "The txn action that makes the job apply once.",
        },
        "lease": _optional_string("Name of the lease that the job needs."),
        "deadline_ms": _optional_count("Epoch milliseconds after which no commit starts."),
        "engine": {"enum": list(ENGINES), "description": "Where the data work runs."},
        "storage_ref": _optional_string("Connection or profile that the driver resolves; never a secret."),
        "trace_id": _optional_string("Ties logs of one run together."),
        "result_uri": _optional_string("Where the result goes."),
        "user_metadata": {"type": "object", "description": "Provenance for commitInfo.userMetadata."},
        "job_id": {"type": "string", "description": "Names this run; made up when empty."},
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
            "description": "unknown: whether the commit landed could not be told.",
        },
        "version_from": _optional_count("The version the job read; null: there was no table."),
        "version_to": _optional_count("The last version it committed, or version_from."),
        "commits": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "already_applied": {"type": "boolean"},
        "applied_by": {
            "type": ["object", "null"],
            "required": ["version"],
            "properties": {
                "version": {"type": "integer", "minimum": 0, "description": "The version that it made."},
                "user_metadata": {"type": "object", "description": "What the commit says of itself."},
            },
            "description": "The commit that had done the work already; null: it is not in the log.",
        },
        "predicted": {"type": "object", "description": "The plan's figures, per kind."},
        "actual": {"type": "object", "description": "What happened, per kind."},
        "metrics": {
            "type": "object",
            "properties": {name: {"type": [kind, "null"], "minimum": 0} for name, kind in _METRICS},
        },
        "output": {"type": "object", "description": "The kind's own result."},
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
"""JSON Schema of a JobResult. Fields that are not named here are allowed and ignored."""


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
