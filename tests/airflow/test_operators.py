"""From arguments to a JobSpec to an XCom, with a runner that only remembers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.errors import DriverLostError
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.checkpoint import DeltaCheckpointOperator
from delta_airflow.operators.job import DeltaJobOperator
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.provenance import TaskIdentity, idempotency_key
from delta_airflow.operators.rendered import as_json_object, as_json_objects, as_rendered_strings
from delta_airflow.operators.restore import DeltaRestoreOperator
from delta_airflow.operators.summary import summarize
from delta_airflow.operators.vacuum import DeltaVacuumOperator
from delta_airflow.runners.base import EventCallback
from delta_airflow.runners.run_directory import RunDirectory
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import ConcurrentAppendError, ConfigurationError, DeltaError, SchemaMismatchError
from delta_core.execution.progress import ProgressEvent
from delta_core.jobs.codec import spec_from_json, spec_to_json
from delta_core.jobs.job_result import JobMetrics, JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef


class RememberingRunner:
    """Succeeds, or raises what it is told to, and keeps the spec."""

    def __init__(self) -> None:
        self.spec: JobSpec | None = None
        self.chosen: RunnerName | None = None
        self.error: DeltaError | None = None
        self.during: Callable[[], None] = lambda: None
        self.cancelled = False

    def run(self, spec: JobSpec, *, on_event: EventCallback) -> JobResult:
        self.spec = spec
        on_event(ProgressEvent(name="data.writing", job_id=spec.job_id, at_ms=1, done=1, total=2))
        self.during()
        if self.error is not None:
            raise self.error
        return JobResult(
            job_id=spec.job_id,
            kind=spec.kind,
            status=JobStatus.SUCCEEDED,
            version_from=3,
            version_to=4,
            commits=(4,),
            metrics=JobMetrics(rows=10),
        )

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, airflow_connection: Path) -> RememberingRunner:
    remembering = RememberingRunner()

    def get_runner(
        hook: DeltawardHook, name: RunnerName | None = None, *, directory: RunDirectory
    ) -> RememberingRunner:
        remembering.chosen = name or hook.settings.runner
        return remembering

    monkeypatch.setattr(DeltawardHook, "get_runner", get_runner)
    return remembering


def context(*, try_number: int = 1, map_index: int = -1, run_id: str = "r1") -> Any:
    return {
        "ti": SimpleNamespace(
            dag_id="d", task_id="t", run_id=run_id, map_index=map_index, try_number=try_number
        ),
        "logical_date": datetime(2026, 1, 1, tzinfo=UTC),
        "outlet_events": {},
    }


def spec_of(operator: DeltaTableOperator, runner: RememberingRunner, **where: Any) -> JobSpec:
    operator.execute(context(**where))
    assert runner.spec is not None
    return runner.spec


def load(**changes: Any) -> DeltaLoadOperator:
    source = {"format": "parquet", "uris": ["/in/a.parquet"]}
    return DeltaLoadOperator(**{"task_id": "t", "table_uri": "/data/t", "source": source, **changes})


def test_the_spec_says_what_for_whom_and_by_when(runner: RememberingRunner, airflow_connection: Path) -> None:
    before = SYSTEM_CLOCK.now_ms()
    spec = spec_of(load(approver="ann", deadline_seconds="60", table_id="abc"), runner)
    assert spec.table == TableRef(uri="file:///data/t", id="abc")
    assert spec.kind == "load"
    assert spec.user_metadata == {
        "dag": "d",
        "task": "t",
        "run": "r1",
        "try": 1,
        "map_index": -1,
        "logical_date": "2026-01-01T00:00:00+00:00",
        "approver": "ann",
    }
    assert spec.deadline_ms is not None
    assert 59_000 < spec.deadline_ms - before < 120_000
    assert spec.storage_ref == "airflow:deltaward_default"
    assert spec.result_uri is not None
    assert spec.result_uri.startswith(airflow_connection.as_uri())
    assert spec_from_json(spec_to_json(spec)) == spec


def test_the_xcom_is_small_and_points_at_the_whole_result(runner: RememberingRunner) -> None:
    value = load().execute(context())
    assert runner.spec is not None
    assert value["result_uri"] == runner.spec.result_uri
    assert (value["version_from"], value["version_to"], value["commits"]) == (3, 4, [4])
    assert value["metrics"] == {"rows": 10}
    assert json.loads(json.dumps(value)) == value


def test_a_large_output_is_cut_to_its_figures() -> None:
    output = {"files": ["x" * 100] * 1000, "num_files": 1000, "note": "n" * 500, "dry_run": True}
    result = JobResult(job_id="j", kind="vacuum", status=JobStatus.SUCCEEDED, output=output)
    value = summarize(result, result_uri="file:///r")
    assert value["output"] == {"num_files": 1000, "dry_run": True}
    assert value["shortened"] == ["output"]
    assert len(json.dumps(value)) < 2000


def test_a_gates_figures_stay_when_its_lists_are_cut() -> None:
    gate = {
        "outcome": "warned",
        "bad_rows": 3,
        "quarantine_uri": None,
        "failed_expectations": ["e" * 50] * 500,
    }
    result = JobResult(job_id="j", kind="load", status=JobStatus.SUCCEEDED, output={"quality": gate})
    value = summarize(result, result_uri="file:///r")
    assert value["output"] == {"quality": {"outcome": "warned", "bad_rows": 3, "quarantine_uri": None}}
    assert value["shortened"] == ["output"]


def test_a_load_hands_its_suite_over_as_text_or_as_a_mapping(runner: RememberingRunner) -> None:
    suite = {"name": "s", "expectations": [{"type": "expect_column_to_exist", "kwargs": {"column": "a"}}]}
    gate = {"suite": suite, "on_failure": "quarantine", "max_bad_fraction": 0.1}
    for given in (gate, json.dumps(gate)):
        assert spec_of(load(quality=given), runner).params["quality"] == gate
    assert "quality" in DeltaLoadOperator.template_fields
    assert "quality" not in spec_of(load(), runner).params


def test_a_retry_has_the_same_key_and_another_job_id(runner: RememberingRunner) -> None:
    first = spec_of(load(), runner, try_number=1)
    second = spec_of(load(), runner, try_number=2)
    assert first.idempotency == second.idempotency
    assert first.job_id != second.job_id
    assert first.result_uri != second.result_uri


def test_other_work_has_another_key(runner: RememberingRunner) -> None:
    keys = [
        spec_of(load(), runner).idempotency,
        spec_of(load(), runner, run_id="r2").idempotency,
        spec_of(load(), runner, map_index=1).idempotency,
        spec_of(load(table_uri="/data/t2"), runner).idempotency,
        spec_of(load(table_id="x"), runner).idempotency,
        spec_of(load(work_name="month 1"), runner).idempotency,
    ]
    assert len(set(keys)) == len(keys)


def test_named_work_is_the_same_in_any_run(runner: RememberingRunner) -> None:
    first = spec_of(load(work_name="month 1"), runner, run_id="manual")
    second = spec_of(load(work_name="month 1"), runner, run_id="backfill", map_index=4)
    assert first.idempotency == second.idempotency


def test_key_parts_cannot_run_into_each_other() -> None:
    table = TableRef(uri="file:///t")
    one = TaskIdentity(dag_id="a", task_id="b.c", run_id="r")
    other = TaskIdentity(dag_id="a.b", task_id="c", run_id="r")
    assert idempotency_key(one, table) != idempotency_key(other, table)


@pytest.mark.parametrize(
    ("operator", "kind", "params", "has_key", "chosen"),
    [
        (
            DeltaOptimizeOperator(
                task_id="t", table_uri="/t", predicate="month = 1", target_size_bytes="1024", runner="inline"
            ),
            "optimize",
            {"predicate": "month = 1", "target_size_bytes": 1024},
            True,
            RunnerName.INLINE,
        ),
        (
            DeltaOptimizeOperator(task_id="t", table_uri="/t", z_order_by=["a", "b"], min_new_fraction="0.5"),
            "optimize",
            {"z_order_by": ["a", "b"], "min_new_fraction": 0.5},
            True,
            RunnerName.INLINE,
        ),
        (
            DeltaOptimizeOperator(task_id="t", table_uri="/t", z_order_by="['a']"),
            "optimize",
            {"z_order_by": ["a"]},
            True,
            RunnerName.INLINE,
        ),
        (
            DeltaOptimizeOperator(task_id="t", table_uri="/t", z_order_by="None"),
            "optimize",
            {},
            True,
            RunnerName.INLINE,
        ),
        (
            DeltaVacuumOperator(task_id="t", table_uri="/t"),
            "vacuum",
            {"dry_run": True},
            False,
            RunnerName.INLINE,
        ),
        (
            DeltaVacuumOperator(task_id="t", table_uri="/t", dry_run="False", retention_hours="200"),
            "vacuum",
            {"dry_run": False, "retention_hours": 200.0},
            True,
            RunnerName.INLINE,
        ),
        (DeltaCheckpointOperator(task_id="t", table_uri="/t"), "checkpoint", {}, False, RunnerName.INLINE),
        (
            DeltaRestoreOperator(task_id="t", table_uri="/t", version="3", timestamp="None"),
            "restore",
            {"version": 3, "dry_run": True},
            False,
            RunnerName.INLINE,
        ),
        (
            DeltaRestoreOperator(
                task_id="t", table_uri="/t", timestamp="2026-01-01T00:00:00Z", dry_run=False
            ),
            "restore",
            {"timestamp": "2026-01-01T00:00:00Z", "dry_run": False},
            True,
            RunnerName.INLINE,
        ),
        (
            DeltaJobOperator(task_id="t", table_uri="/t", kind="observe", runner="spark_submit"),
            "observe",
            {},
            True,
            RunnerName.SPARK_SUBMIT,
        ),
        (
            DeltaJobOperator(
                task_id="t", table_uri="/t", kind="optimize", job_parameters='{"target_size_bytes": 5}'
            ),
            "optimize",
            {"target_size_bytes": 5},
            True,
            RunnerName.INLINE,
        ),
    ],
)
def test_rendered_texts_become_typed_parameters(
    runner: RememberingRunner,
    operator: DeltaTableOperator,
    kind: str,
    params: Mapping[str, Any],
    has_key: bool,
    chosen: RunnerName,
) -> None:
    spec = spec_of(operator, runner)
    assert (spec.kind, dict(spec.params)) == (kind, params)
    assert (spec.idempotency is not None) is has_key
    assert runner.chosen is chosen


def test_load_takes_its_arguments_over(runner: RememberingRunner) -> None:
    operator = load(
        mode="replace_where",
        replace_where="month = 1",
        partition_by=["month"],
        contract={"columns": [{"name": "a", "type": "integer", "nullable": False}]},
        merge_schema="true",
    )
    assert dict(spec_of(operator, runner).params) == {
        "source": {"format": "parquet", "uris": ["/in/a.parquet"]},
        "mode": "overwrite",
        "replace_where": "month = 1",
        "partition_by": ["month"],
        "contract": {"columns": [{"name": "a", "type": "integer", "nullable": False}]},
        "merge_schema": True,
        "overwrite_schema": False,
    }


def test_load_replaces_partitions(runner: RememberingRunner) -> None:
    operator = load(mode="overwrite", partition_overwrite_mode="dynamic", max_records_per_file="5")
    params = spec_of(operator, runner).params
    assert params["partition_overwrite_mode"] == "dynamic"
    assert params["max_records_per_file"] == 5


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: load(mode="upsert"), "upsert"),
        (lambda: load(partition_overwrite_mode="some"), "partition_overwrite_mode"),
        (lambda: load(max_records_per_file="many"), "max_records_per_file"),
        (lambda: load(mode="replace_where"), "replace_where"),
        (lambda: load(replace_where="a = 1"), "replace_where"),
        (lambda: load(source="{"), "source"),
        (lambda: load(contract={"x": float("nan")}), "contract"),
        (lambda: load(quality="[1]"), "quality"),
        (lambda: load(merge_schema="perhaps"), "merge_schema"),
        (lambda: load(partition_by="month"), "partition_by"),
        (lambda: load(table_uri=" "), "table_uri"),
        (lambda: load(table_uri="relative/t"), "relative"),
        (lambda: load(conn_id="nowhere"), "nowhere"),
        (lambda: load(runner="yarn"), "argument runner is not valid"),
        (lambda: load(deadline_seconds="0"), "deadline_seconds"),
        (lambda: DeltaVacuumOperator(task_id="t", table_uri="/t", dry_run="None"), "dry_run"),
        (lambda: DeltaVacuumOperator(task_id="t", table_uri="/t", retention_hours="nan"), "retention_hours"),
        (lambda: DeltaRestoreOperator(task_id="t", table_uri="/t"), "version"),
        (
            lambda: DeltaRestoreOperator(task_id="t", table_uri="/t", version=1, timestamp="x"),
            "Both are given",
        ),
        (lambda: DeltaRestoreOperator(task_id="t", table_uri="/t", version="1.5"), "version"),
        (lambda: DeltaRestoreOperator(task_id="t", table_uri="/t", version=-1), "version"),
        (
            lambda: DeltaOptimizeOperator(task_id="t", table_uri="/t", z_order_by="a, b"),
            "z_order_by",
        ),
        (
            lambda: DeltaOptimizeOperator(task_id="t", table_uri="/t", target_size_bytes=0),
            "target_size_bytes",
        ),
        (lambda: DeltaJobOperator(task_id="t", table_uri="/t", kind=""), "kind"),
        (
            lambda: DeltaJobOperator(task_id="t", table_uri="/t", kind="x", job_parameters="[1]"),
            "job_parameters",
        ),
    ],
)
def test_what_is_not_valid_after_rendering_fails_without_a_retry(
    runner: RememberingRunner, make: Callable[[], DeltaTableOperator], word: str
) -> None:
    with pytest.raises(AirflowFailException, match=word):
        make().execute(context())
    assert runner.spec is None


@pytest.mark.parametrize("error", [ConcurrentAppendError("another writer won"), DriverLostError("lost")])
def test_an_error_that_can_pass_is_raised_for_a_retry(runner: RememberingRunner, error: DeltaError) -> None:
    runner.error = error
    with pytest.raises(type(error)):
        load().execute(context())


def test_any_other_error_fails_the_task_for_good(runner: RememberingRunner) -> None:
    runner.error = SchemaMismatchError("extra column x")
    with pytest.raises(AirflowFailException, match="SCHEMA_MISMATCH: extra column x"):
        load().execute(context())


def test_killing_the_task_cancels_the_job(runner: RememberingRunner) -> None:
    operator = load()
    runner.during = operator.on_kill
    operator.execute(context())
    assert runner.cancelled


def test_a_task_killed_before_it_started_cancels_its_job_at_once(runner: RememberingRunner) -> None:
    operator = load()
    operator.on_kill()
    operator.execute(context())
    assert runner.cancelled


def test_every_field_that_takes_part_is_templated() -> None:
    for cls in (DeltaVacuumOperator, DeltaRestoreOperator, DeltaOptimizeOperator):
        assert "dry_run" in cls.template_fields
        operator = cls(task_id="t", table_uri="/t", dry_run="{{ plan }}")
        operator.render_template_fields({"plan": "True"})  # type: ignore[typeddict-item]
        assert operator.plans_only() is True
        operator.plan_only = "false"
        assert operator.dry_run == "false"
    operator: Any = load(
        table_uri="/data/{{ var }}", approver="{{ who }}", source={"uris": ["/in/{{ var }}"]}
    )
    operator.render_template_fields({"var": "x", "who": "ann"})  # type: ignore[typeddict-item]
    assert operator.table_uri == "/data/x"
    assert operator.approver == "ann"
    assert operator.source == {"uris": ["/in/x"]}


def test_no_secret_of_the_connection_is_in_the_spec(
    runner: RememberingRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    extra = {"work_dir": str(tmp_path), "storage_options": {"aws_secret_access_key": "hunter2"}}
    connection = {"conn_type": "deltaward", "password": "hunter3", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", json.dumps(connection))
    operator = load()
    value = operator.execute(context())
    assert runner.spec is not None
    assert "hunter" not in spec_to_json(runner.spec) + json.dumps(value)


def test_a_configuration_error_is_a_delta_error() -> None:
    with pytest.raises(ConfigurationError):
        DeltaJobOperator(task_id="t", table_uri="/t", kind="").job_kind()


@pytest.mark.parametrize("value", [{"month": 1}, {"name": "it's", "of": ['"quoted"', None, True]}, {}])
def test_a_template_of_a_mapping_needs_no_tojson(value: dict[str, Any]) -> None:
    for rendered in (value, json.dumps(value), str(value)):
        assert as_json_object("rules", rendered) == value
    for rendered in ([value], json.dumps([value]), str([value])):
        assert as_json_objects("matched", rendered) == [value]
    assert as_rendered_strings("columns", str(["it's", 'a "b"'])) == ["it's", 'a "b"']


@pytest.mark.parametrize("rendered", ["{'a': b}", "{1", "{'a'}", "{'a': {1, 2}}", "[1]", "{'a': b'x'}"])
def test_a_rendered_string_that_is_no_mapping_is_refused(rendered: str) -> None:
    with pytest.raises(ConfigurationError, match="argument rules"):
        as_json_object("rules", rendered)
