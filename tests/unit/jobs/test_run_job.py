from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core.clock import ManualClock
from delta_core.errors import (
    CommitStateUnknownError,
    ConfigurationError,
    InvalidJobSpecError,
    JobError,
    StorageError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import EVENT_NAMES
from delta_core.jobs.builtin import default_registry
from delta_core.jobs.codec import result_from_json, result_to_json
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.registry import JobKind, JobRegistry
from delta_core.jobs.run_job import UNEXPECTED_ERROR_CODE, run_job
from delta_core.jobs.timestamps import parse_timestamp_ms
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.sinks import CallbackSink, CollectingSink


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for number in range(4):
        deltalake.write_deltalake(str(path), pa.table({"id": [number], "s": ["x"]}), mode="append")
    return path


def job(path: Path, kind: str, /, **params: Any) -> JobSpec:
    return JobSpec(kind=kind, table=TableRef(uri=str(path)), params=params)


def kind_that(action: Any, **options: Any) -> JobRegistry:
    registry = JobRegistry(group=None)
    registry.register(JobKind(name="test", run=action, **options))
    return registry


def run_test_kind(path: Path, action: Any, **options: Any) -> JobResult:
    return run_job(job(path, "test"), JobContext(), registry=kind_that(action, **options))


def test_a_local_table_takes_none_of_the_options_that_are_for_other_stores(table: Path) -> None:
    context = JobContext(storage_options={"aws_region": "elsewhere"})
    for uri in (str(table), table.as_uri()):
        result = run_job(replace(job(table, "describe"), table=TableRef(uri=uri)), context)
        assert result.status is JobStatus.SUCCEEDED, result.error
    refused = run_job(replace(job(table, "describe"), table=TableRef(uri="gs://bucket/t")), context)
    assert refused.error is not None
    assert refused.error.code == ConfigurationError.code


def test_the_whole_life_of_a_table(table: Path) -> None:
    results = [
        run_job(spec, JobContext())
        for spec in (
            job(table, "describe"),
            job(table, "plan", rules={"compaction_min_small_files": 2}, list_vacuum=True),
            job(table, "optimize"),
            job(table, "verify", version_from=3, expected_rows=4),
            job(table, "checkpoint"),
            job(table, "observe"),
            job(table, "restore", version=1, dry_run=False),
            job(table, "restore", version=4, dry_run=False),
            job(table, "vacuum", retention_hours=0, enforce_retention=False, force=True, dry_run=False),
            job(table, "cleanup_metadata"),
        )
    ]
    assert [r.error for r in results] == [None] * 10
    assert all(r.status is JobStatus.SUCCEEDED for r in results)
    describe, plan, optimize, verify, checkpoint, observe, back, forward, vacuum, _ = results
    assert describe.output["num_files"] == 4
    assert plan.output["due"] == ["optimize"]
    assert (optimize.version_from, optimize.version_to, optimize.commits) == (3, 4, (4,))
    assert optimize.predicted["files_removed"] == optimize.actual["files_removed"] == 4
    assert optimize.metrics.rows == 4
    assert verify.output["report"]["passed"] is True
    assert checkpoint.actual["version"] == 4
    assert observe.output["health"]["log_tail_commits"] == 0
    assert (back.commits, forward.commits, vacuum.commits) == ((5,), (6,), (7, 8))
    assert deltalake.DeltaTable(str(table)).to_pyarrow_table().num_rows == 4
    for result in results:
        assert result_from_json(result_to_json(result)) == result
        assert result.metrics.wall_seconds is not None
        assert (result.metrics.peak_rss_bytes or 0) > 1 << 20


def test_dry_runs_are_the_default_where_data_could_be_lost(table: Path) -> None:
    next(iter(table.glob("*.parquet"))).unlink()
    specs = (job(table, "restore", version=0), job(table, "vacuum"), job(table, "cleanup_metadata"))
    for spec in (*specs, job(table, "repair")):
        assert run_job(spec, JobContext()).commits == ()
    assert Snapshot.load(LocalLogStore(table)).version == 3


@pytest.mark.parametrize("kind", ["optimize", "vacuum", "restore", "repair", "checkpoint", "plan"])
def test_events_come_in_the_order_of_the_contract(table: Path, kind: str) -> None:
    params = {"restore": {"version": 1, "dry_run": False}}.get(kind, {})
    sink = CollectingSink()
    result = run_job(replace(job(table, kind, **params), job_id="j-7"), JobContext(progress=sink))
    assert result.error is None
    assert {event.job_id for event in sink.events} == {"j-7"}
    positions = [EVENT_NAMES.index(name) for name in sink.names]
    assert positions == sorted(positions)
    first = ["job.started", "snapshot.loaded", *([] if kind == "plan" else ["idempotency.checked"])]
    assert sink.names[: len(first)] == first
    assert sink.names[-1] == "job.finished"


def test_a_key_that_is_in_the_table_makes_it_a_success_without_work(table: Path) -> None:
    spec = replace(
        job(table, "optimize"), idempotency=IdempotencyKey(app_id="a", version=2), user_metadata={"try": 1}
    )
    first, second = run_job(spec, JobContext()), run_job(spec, JobContext())
    assert (first.already_applied, first.commits) == (False, (4,))
    assert (second.already_applied, second.commits, second.status) == (True, (), JobStatus.SUCCEEDED)
    assert (second.version_from, second.version_to) == (4, 4)
    older = replace(spec, idempotency=IdempotencyKey(app_id="a", version=1))
    assert run_job(older, JobContext()).already_applied
    info = history(LocalLogStore(table), limit=1)[0].commit_info
    assert info.user_metadata == '{"try": 1}'


def test_a_twin_that_commits_first_makes_it_a_success_too(table: Path) -> None:
    spec = replace(job(table, "optimize"), idempotency=IdempotencyKey(app_id="twin"))
    twin: list[JobResult] = []

    def run_the_twin(event: Any) -> None:
        if event.name == "data.written" and not twin:
            twin.append(run_job(spec, JobContext()))

    result = run_job(spec, JobContext(progress=CallbackSink(run_the_twin)))
    assert twin[0].commits == (4,)
    assert (result.status, result.already_applied, result.commits) == (JobStatus.SUCCEEDED, True, ())
    assert Snapshot.load(LocalLogStore(table)).version == 4


def test_a_kind_that_never_commits_ignores_the_key(table: Path) -> None:
    key = IdempotencyKey(app_id="a")
    run_job(replace(job(table, "optimize"), idempotency=key), JobContext())
    result = run_job(replace(job(table, "observe"), idempotency=key), JobContext())
    assert not result.already_applied
    assert result.output["health"]["version"] == 4


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"kind": "frobnicate"}, "INVALID_JOB_SPEC", "The job kind 'frobnicate' does not exist."),
        ({"params": {"predikate": "x"}}, "INVALID_JOB_SPEC", "params.predikate is unknown (known:"),
        ({"params": {"target_size_bytes": "1gb"}}, "INVALID_JOB_SPEC", "must be an integer or null"),
        ({"lease": "../l"}, "INVALID_JOB_SPEC", "not a valid name for a lease"),
        ({"format_version": 2}, "INVALID_JOB_SPEC", "format 2"),
        ({"deadline_ms": 1}, "JOB_ERROR", "deadline passed"),
        ({"engine": "spark"}, "INVALID_CONFIGURATION", "engine 'spark'"),
        ({"table": TableRef(uri="ftp://bucket/t")}, "INVALID_URI", "ftp"),
        ({"table": TableRef(uri="/no/such/table")}, "TABLE_NOT_FOUND", "no Delta table"),
    ],
)
def test_what_cannot_be_done_is_a_failed_result(
    table: Path, change: dict[str, Any], code: str, words: str
) -> None:
    result = run_job(replace(job(table, "optimize"), **change), JobContext())
    assert result.status is JobStatus.FAILED
    assert result.error is not None
    assert result.error.code == code
    assert words in result.error.message


def test_another_table_at_the_uri_is_refused(table: Path) -> None:
    right = Snapshot.load(LocalLogStore(table)).metadata.id
    good = run_job(replace(job(table, "describe"), table=TableRef(uri=str(table), id=right)), JobContext())
    assert good.error is None
    bad = run_job(replace(job(table, "describe"), table=TableRef(uri=str(table), id="other")), JobContext())
    assert bad.error is not None
    assert "The job names the table id other" in bad.error.message


def test_a_deadline_that_passes_during_the_work_stops_the_commit(table: Path) -> None:
    clock = ManualClock(1_900_000_000_000)

    def late(event: Any) -> None:
        if event.name == "files.planned":
            clock.advance(61)

    spec = replace(job(table, "optimize"), deadline_ms=clock.now_ms() + 60_000)
    result = run_job(spec, JobContext(clock=clock, progress=CallbackSink(late)))
    assert result.error is not None
    assert "deadline passed 1 s ago" in result.error.message
    assert Snapshot.load(LocalLogStore(table)).version == 3


def test_every_way_to_fail_becomes_a_status(table: Path) -> None:
    def raising(error: Exception) -> Any:
        def run(spec: JobSpec, context: JobContext) -> JobResult:
            raise error

        return run

    unknown = run_test_kind(table, raising(CommitStateUnknownError("where is it?", fix="look")))
    assert unknown.status is JobStatus.UNKNOWN
    failed = run_test_kind(table, raising(StorageError("disk", cause="full", fix="delete")))
    assert failed.error is not None
    assert (failed.status, failed.error.code, failed.error.retryable) == (
        JobStatus.FAILED,
        "STORAGE_ERROR",
        True,
    )
    assert failed.error.message == "disk. Cause: full. Fix: delete."
    defect = run_test_kind(table, raising(ZeroDivisionError("oops")))
    assert defect.error is not None
    assert (defect.status, defect.error.code) == (JobStatus.FAILED, UNEXPECTED_ERROR_CODE)
    assert (defect.version_from, defect.version_to) == (3, 3)


def test_an_interrupt_is_not_swallowed(table: Path) -> None:
    def interrupted(spec: JobSpec, context: JobContext) -> JobResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_test_kind(table, interrupted)


def test_a_kind_may_create_its_table(tmp_path: Path) -> None:
    def create(spec: JobSpec, context: JobContext) -> JobResult:
        assert context.snapshot is None
        return context.succeeded(
            spec, version_to=0, commits=(0,), output={"store": context.require_store().uri}
        )

    result = run_test_kind(tmp_path / "new", create, needs_table=False)
    assert (result.version_from, result.version_to) == (None, 0)
    assert run_test_kind(tmp_path / "new", create).error is not None


def test_a_failed_verification_still_has_its_report(table: Path) -> None:
    result = run_job(job(table, "verify", expected_rows=5), JobContext())
    assert result.error is not None
    assert result.error.code == "VERIFICATION_FAILED"
    assert result.actual["failed"] == ["row_total"]
    assert len(result.output["report"]["checks"]) == 5


def test_an_older_version_can_be_verified(table: Path) -> None:
    result = run_job(job(table, "verify", version_to=1, expected_rows=2), JobContext())
    assert result.error is None
    assert result.version_to == 1


def test_names_are_taken_once_and_extensions_come_late() -> None:
    registry = JobRegistry(group=None)
    kind = JobKind(name="k", run=lambda spec, context: context.succeeded(spec))
    registry.register(kind)
    registry.register(kind)
    with pytest.raises(ConfigurationError, match="Two job kinds"):
        registry.register(replace(kind, help="another"))
    with pytest.raises(InvalidJobSpecError, match="Choose one of k"):
        registry.get("nothing")
    assert [k.name for k in registry.kinds()] == ["k"]
    assert default_registry() is default_registry()


def test_a_broken_extension_is_named_and_the_rest_works(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "broken", "nowhere:register"

        def load(self) -> Any:
            raise ImportError("no module named nowhere")

    monkeypatch.setattr("delta_core.jobs.registry.entry_points", lambda group: [Point()])
    registry = JobRegistry()
    registry.register(JobKind(name="k", run=lambda spec, context: context.succeeded(spec)))
    assert registry.get("k").name == "k"
    with pytest.raises(InvalidJobSpecError, match="no module named nowhere"):
        registry.get("other")


def test_small_work_stays_inline_when_spark_is_at_hand() -> None:
    class Spark(InlineExecutor):
        name = "spark"

    context = JobContext(executor=Spark())
    spec = JobSpec(kind="optimize", table=TableRef(uri="t"))
    assert context.executor_for(spec, planned_bytes=1).name == "inline"
    assert context.executor_for(spec, planned_bytes=1 << 40) is context.executor
    assert context.executor_for(replace(spec, engine="spark"), planned_bytes=1) is context.executor


def test_a_context_without_a_table_says_so() -> None:
    with pytest.raises(JobError):
        JobContext().require_store()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (1_700_000_000_000, 1_700_000_000_000),
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_times_that_people_give(text: str | int, expected: int) -> None:
    assert parse_timestamp_ms(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2023-13-01", "999999-01-01"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_timestamp_ms(text)


def test_work_that_was_done_before_says_by_which_run(table: Path) -> None:
    spec = replace(
        job(table, "optimize"),
        idempotency=IdempotencyKey(app_id="a"),
        user_metadata={"run": "r1", "dag": "d"},
    )
    first = run_job(spec, JobContext())
    deltalake.write_deltalake(str(table), pa.table({"id": [9], "s": ["x"]}), mode="append")
    again = run_job(replace(spec, user_metadata={"run": "r2"}), JobContext())
    assert (first.already_applied, first.applied_by) == (False, None)
    assert again.already_applied
    assert again.applied_by is not None
    assert (again.applied_by.version, again.applied_by.user_metadata) == (4, {"run": "r1", "dag": "d"})
    assert again.version_to == 5
