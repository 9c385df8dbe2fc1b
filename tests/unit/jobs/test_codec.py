from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from delta_core.errors import InvalidJobSpecError, JobError
from delta_core.jobs.codec import result_from_json, result_to_json, spec_from_json, spec_to_json
from delta_core.jobs.job_result import JobErrorInfo, JobMetrics, JobResult, JobStatus
from delta_core.jobs.job_spec import Delivery, IdempotencyKey, JobSpec, TableRef
from delta_core.transaction.applied_commit import AppliedCommit

FULL_SPEC = JobSpec(
    kind="optimize",
    table=TableRef(uri="/data/t", id="abc"),
    params={"predicate": "d = '2024-01-01'", "target_size_bytes": 1 << 27},
    idempotency=IdempotencyKey(app_id="dag/task", version=3, delivery=Delivery(app_id="work", version=7)),
    deadline_ms=1_800_000_000_000,
    engine="inline",
    storage_ref="my_conn",
    trace_id="t-1",
    result_uri="/tmp/r.json",
    user_metadata={"dag": "etl", "try": 2},
    job_id="j-1",
)
FULL_RESULT = JobResult(
    job_id="j-1",
    kind="optimize",
    status=JobStatus.UNKNOWN,
    version_from=3,
    version_to=4,
    commits=(4,),
    already_applied=True,
    applied_by=AppliedCommit(version=4, user_metadata={"run": "r"}),
    predicted={"files": 3},
    actual={"files": 2},
    metrics=JobMetrics(files_added=1, cpu_seconds=0.25, peak_rss_bytes=1 << 28),
    output={"note": "x"},
    warnings=("slow",),
    error=JobErrorInfo(code="COMMIT_STATE_UNKNOWN", message="?", retryable=False),
    artefact_uris=("file:///a",),
)


@pytest.mark.parametrize("spec", [FULL_SPEC, JobSpec(kind="vacuum", table=TableRef(uri="t"))])
def test_a_spec_survives_json(spec: JobSpec) -> None:
    text = spec_to_json(spec)
    assert "\n" not in text
    assert spec_from_json(text) == spec
    assert spec_from_json(text.encode()) == spec


def test_a_minimal_document_takes_the_defaults() -> None:
    spec = spec_from_json('{"format_version": 1, "kind": "plan", "table": {"uri": "t"}}')
    assert spec == JobSpec(kind="plan", table=TableRef(uri="t"))


@pytest.mark.parametrize("result", [FULL_RESULT, JobResult(job_id="", kind="x", status=JobStatus.FAILED)])
def test_a_result_survives_json(result: JobResult) -> None:
    assert result_from_json(result_to_json(result)) == result


def test_a_result_may_carry_what_is_not_known_here() -> None:
    document = {**json.loads(result_to_json(FULL_RESULT)), "colour": "blue"}
    assert result_from_json(json.dumps(document)) == FULL_RESULT


def altered(**changes: Any) -> str:
    document = {**json.loads(spec_to_json(FULL_SPEC)), **changes}
    return json.dumps({key: value for key, value in document.items() if value is not ...})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"format_version": 2}, "format 2"),
        ({"kind": ""}, "kind must not be empty"),
        ({"kind": 7}, "kind must be a string but is an integer"),
        ({"table": {"id": "x"}}, "table.uri is missing"),
        ({"table": "uri"}, "table must be an object"),
        ({"deadlin_ms": 5}, "deadlin_ms is unknown (known: deadline_ms,"),
        ({"deadline_ms": -1}, "deadline_ms must be at least 0"),
        ({"engine": "flink"}, "engine must be one of auto, inline, spark"),
        ({"idempotency": {"app_id": "a", "version": True}}, "idempotency.version must be an integer"),
        ({"params": None}, "params must be an object but is null"),
    ],
)
def test_a_bad_spec_is_refused_and_the_field_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidJobSpecError) as caught:
        spec_from_json(altered(**changes))
    assert named in caught.value.problem


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000])
def test_what_is_not_a_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidJobSpecError):
        spec_from_json(text)
    with pytest.raises(JobError):
        result_from_json(text)


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InvalidJobSpecError) as caught:
        spec_from_json('{"format_version": 1, "engine": "x"}')
    assert all(word in caught.value.problem for word in ("kind is missing", "table is missing", "engine"))


def test_a_newer_result_is_refused() -> None:
    with pytest.raises(JobError, match="format 9"):
        result_from_json(result_to_json(replace(FULL_RESULT, format_version=9)))


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_params_that_json_does_not_have_are_refused(value: object) -> None:
    with pytest.raises(InvalidJobSpecError):
        spec_to_json(replace(FULL_SPEC, params={"p": value}))
