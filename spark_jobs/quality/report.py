"""The report of a quality gate as a JSON document: expectations, results and decision."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from delta_core.storage import LogStore
from delta_core.version import VERSION
from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.quality.report_html import to_html

FORMAT_VERSION: Final = 1
_MAX_STRING = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportUris:
    """The URIs of a report's JSON and HTML files."""

    json: str
    html: str


def build_report(
    *,
    summary: Mapping[str, Any],
    outcomes: Sequence[ExpectationOutcome],
    samples: int,
    table_uri: str,
    job_id: str,
    engine: str,
    policy: Mapping[str, Any],
    why: str,
    rejected_rows: int,
    created_ms: int,
) -> dict[str, Any]:
    """The report document, with JSON values only.

    Args:
        summary: the gate's part of the job's output.
        samples: the number of unexpected values per expectation. With 0 the report contains no values of the
            data, not even the observed minimum or maximum of a batch-level expectation.
        policy: on_failure and the thresholds.
        rejected_rows: the number of rows that violate the contract. No expectation was evaluated on them.
    """
    created = datetime.datetime.fromtimestamp(created_ms / 1000, datetime.UTC)
    return {
        "formatVersion": FORMAT_VERSION,
        "createdBy": f"deltaward/{VERSION}",
        "createdAt": created.isoformat(timespec="milliseconds"),
        "table": table_uri,
        "job": job_id,
        "engine": engine,
        "policy": dict(policy),
        "why": why,
        "rejectedRows": rejected_rows,
        **summary,
        "results": [_entry(outcome, samples) for outcome in outcomes],
    }


def write_report(store: LogStore, name: str, document: Mapping[str, Any]) -> ReportUris:
    """Write a report as `<name>.json` and `<name>.html` to a directory.

    Raises:
        StorageError: the directory cannot be written to.
    """
    json_text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    store.put(f"{name}.json", json_text.encode("utf-8", "backslashreplace"))
    store.put(f"{name}.html", to_html(document).encode("utf-8", "backslashreplace"))
    return uris_of(store, name)


def uris_of(store: LogStore, name: str) -> ReportUris:
    """The URIs of the report files `<name>.json` and `<name>.html` in the store."""
    return ReportUris(json=f"{store.uri}/{name}.json", html=f"{store.uri}/{name}.html")


def plain(value: Any) -> Any:
    """Any value of a batch as a JSON value. Strings are truncated to 200 characters."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= _MAX_STRING else value[:_MAX_STRING] + "…"
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return plain(value.hex())
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    # Numbers of numpy, whose types JSON does not support.
    unpacked = value.item() if hasattr(value, "item") else value
    if isinstance(unpacked, float):
        return unpacked if math.isfinite(unpacked) else str(unpacked)
    return unpacked if isinstance(unpacked, (bool, int)) else plain(str(value))


def _entry(outcome: ExpectationOutcome, samples: int) -> dict[str, Any]:
    spec = outcome.planned.spec
    columns = spec.columns
    return {
        "name": outcome.name,
        "type": spec.type,
        "column": columns[0] if len(columns) == 1 else (list(columns) or None),
        "kwargs": plain(spec.kwargs),
        "severity": spec.severity.value,
        "success": outcome.success,
        "unexpectedCount": outcome.unexpected_count,
        "unexpectedPercent": plain(outcome.unexpected_percent),
        "observed": plain(outcome.observed) if samples else None,
        "samples": [plain(value) for value in outcome.samples[:samples]],
        # Great Expectations' message may quote a value.
        "error": outcome.error
        if samples or outcome.error is None
        else "the expectation could not be evaluated",
    }
