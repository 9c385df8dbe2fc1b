from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.run_state import RunPhase, RunState
from delta_airflow.hooks.settings import ConnectionSettings, RunnerName
from delta_airflow.runners.driver import (
    CONNECT_TOKEN_VARIABLE,
    STORAGE_OPTIONS_VARIABLE,
    driver_environment,
    driver_program,
)
from delta_airflow.runners.inline import InlineRunner
from delta_airflow.runners.process import ProcessRunner
from delta_airflow.runners.run_directory import RunDirectory, path_component
from delta_airflow.runners.spark_connect import SparkConnectCommand
from delta_airflow.runners.spark_submit import SparkSubmitCommand
from delta_core.errors import ConfigurationError, JobFailedError
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from tests.support.airflow import connection_json
from tests.support.repository import ROOT

SECRETS = {"aws_secret_access_key": "hunter2"}


def hook(monkeypatch: pytest.MonkeyPatch, *, password: str | None = None, **extra: Any) -> DeltawardHook:
    monkeypatch.setenv("AIRFLOW_CONN_T", connection_json(password=password, **extra))
    return DeltawardHook("t")


def test_a_connection_that_is_not_there_is_named_with_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="connection nowhere does not exist") as caught:
        _ = DeltawardHook("nowhere").settings
    assert "AIRFLOW_CONN_NOWHERE" in caught.value.fix


@pytest.mark.parametrize("field", ["host", "login", "schema", "port"])
def test_fields_without_a_meaning_are_refused(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    value = 15002 if field == "port" else "x"
    monkeypatch.setenv("AIRFLOW_CONN_T", json.dumps({"conn_type": "deltaward", field: value}))
    with pytest.raises(ConfigurationError, match=field):
        _ = DeltawardHook("t").settings


@pytest.mark.parametrize("extra", ['{"allowed_roots": ["/data"],}', "allowed_roots=/data", '["/data"]'])
def test_an_extra_that_is_not_a_json_object_does_not_lift_the_roots(
    monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_T", json.dumps({"conn_type": "deltaward", "extra": extra}))
    with pytest.raises(ConfigurationError, match="not a JSON object"):
        DeltawardHook("t").table_uri("/etc/t")


def test_a_connection_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_T", json.dumps({"conn_type": "aws", "login": "a", "password": "b"}))
    with pytest.raises(ConfigurationError, match="of the type aws, not deltaward") as caught:
        _ = DeltawardHook("t").settings
    assert "storage_conn_id" in caught.value.fix


def test_settings_load_on_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    hook(monkeypatch, runner="spark_submit")
    loaded = asyncio.run(DeltawardHook.aload("t"))
    assert loaded.settings.runner is RunnerName.SPARK_SUBMIT


def test_tables_outside_the_allowed_roots_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "lake", tmp_path / "lake2"
    inside.mkdir()
    outside.mkdir()
    (inside / "way-out").symlink_to(outside)
    subject = hook(monkeypatch, allowed_roots=[str(inside)])
    assert subject.table_uri(f"{inside}/t/") == (inside / "t").as_uri()
    for refused in (outside / "t", inside / "way-out" / "t", inside / ".." / "lake2" / "t"):
        with pytest.raises(ConfigurationError, match="may not be used"):
            subject.table_uri(str(refused))


@pytest.mark.parametrize(
    "roots", [["/"], ["file:///"], ["/data"], ["/data/"], ["/etc", "/data"], "/etc, /data"]
)
def test_a_root_holds_what_lies_below_it(monkeypatch: pytest.MonkeyPatch, roots: list[str] | str) -> None:
    assert hook(monkeypatch, allowed_roots=roots).table_uri("/data/t") == "file:///data/t"


@pytest.mark.parametrize(
    "params",
    [
        {"source": {"format": "delta", "uris": ["/out/payroll"]}},
        {"source": {"format": "csv", "uris": ["/data/in.csv", "file:///data/../out/a.csv"]}},
        {"source": {"format": "csv", "uris": ["in.csv"]}},
        {"source": {"format": "csv", "uris": ["s3://bucket/in.csv"]}},
        {"quality": {"suite": {"name": "s", "expectations": []}, "quarantine_uri": "/out/q"}},
        {"quality": {"report_uri": "/out/r"}},
        {"anything": [{"of_another_kind": {"target_uri": "/out/t"}}]},
    ],
)
def test_every_uri_of_a_job_is_held_against_the_allowed_roots(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError, match=r"may not be used for .*(uri|uris)"):
        hook(monkeypatch, allowed_roots=["/data"]).require_allowed(params)
    hook(monkeypatch).require_allowed(params)


def test_a_job_within_the_allowed_roots_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"source": {"uris": ["/data/a.csv", "s3a://bucket/in/b.csv"]}, "mode": "append"}
    subject = hook(monkeypatch, allowed_roots=["/data", "s3://bucket/in"])
    subject.require_allowed(params)
    with pytest.raises(ConfigurationError, match="may not be used"):
        subject.require_allowed({"source": {"uris": ["/data/a.csv", "s3://bucket/inside.csv"]}})


def test_a_relative_table_uri_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="relative"):
        hook(monkeypatch).table_uri("data/t")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (None, InlineRunner),
        (RunnerName.INLINE, InlineRunner),
        (RunnerName.SPARK_SUBMIT, ProcessRunner),
        (RunnerName.SPARK_CONNECT, ProcessRunner),
    ],
)
def test_there_is_a_runner_for_each_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: RunnerName | None, kind: type
) -> None:
    assert isinstance(hook(monkeypatch).get_runner(name, directory=RunDirectory(path=tmp_path)), kind)


def spec() -> JobSpec:
    return JobSpec(kind="load", table=TableRef(uri="file:///t"), job_id="j1")


def test_spark_submit_gets_paths_and_no_secret(tmp_path: Path) -> None:
    settings = ConnectionSettings(master="local[2]", storage_options=SECRETS, connect_token="hunter3")
    command = SparkSubmitCommand(settings).build(
        spec_path=tmp_path / "spec.json", result_path=tmp_path / "result.json", spec=spec()
    )
    text = " ".join(command.arguments)
    assert Path(command.arguments[0]).name == "spark-submit"
    assert command.arguments[-5:] == (
        str(ROOT / "spark_jobs" / "main.py"),
        "--spec",
        str(tmp_path / "spec.json"),
        "--result",
        str(tmp_path / "result.json"),
    )
    assert "--master local[2] --deploy-mode client" in text
    assert "spark.driver.bindAddress=127.0.0.1" in text
    assert "hunter" not in text
    assert "hunter" not in repr(command)
    assert json.loads(command.environment[STORAGE_OPTIONS_VARIABLE]) == SECRETS


def test_a_cluster_driver_is_not_bound_to_loopback(tmp_path: Path) -> None:
    settings = ConnectionSettings(master="spark://h:7077")
    command = SparkSubmitCommand(settings).build(spec_path=tmp_path, result_path=tmp_path, spec=spec())
    assert not any("127.0.0.1" in argument for argument in command.arguments)


def test_spark_connect_gets_the_address_as_an_argument_and_the_token_by_environment(tmp_path: Path) -> None:
    settings = ConnectionSettings(
        connect_url="sc://127.0.0.1:15002", connect_token="hunter3", python="/opt/python3.11"
    )
    command = SparkConnectCommand(settings).build(
        spec_path=tmp_path / "s", result_path=tmp_path / "r", spec=spec()
    )
    assert command.arguments == (
        *("/opt/python3.11", "-m", "spark_jobs.main", "--spec", str(tmp_path / "s")),
        *("--result", str(tmp_path / "r"), "--remote", "sc://127.0.0.1:15002"),
    )
    assert command.environment[CONNECT_TOKEN_VARIABLE] == "hunter3"
    with pytest.raises(ConfigurationError, match="Spark Connect server"):
        SparkConnectCommand(ConnectionSettings()).build(spec_path=tmp_path, result_path=tmp_path, spec=spec())


def test_the_driver_inherits_nothing_of_airflow() -> None:
    base = {
        "PATH": "/bin",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgres://hunter2",
        "AIRFLOW_CONN_X": "hunter2",
        "_AIRFLOW_PROCESS_CONTEXT": "server",
        "PYTHONPATH": f"relative{os.pathsep}/absolute",
    }
    environment = driver_environment(ConnectionSettings(), base=base)
    assert "hunter2" not in json.dumps(environment)
    assert not any("AIRFLOW" in name for name in environment)
    assert environment["PYTHONPATH"].split(os.pathsep) == [
        str(Path("relative").absolute()),
        "/absolute",
        str(ROOT),
    ]
    assert environment["PYSPARK_PYTHON"] == sys.executable


def test_another_interpreter_gets_none_of_this_ones_packages() -> None:
    environment = driver_environment(ConnectionSettings(python="/opt/python3"), base={"PATH": "/bin"})
    assert "PYTHONPATH" not in environment
    assert environment["PYSPARK_DRIVER_PYTHON"] == "/opt/python3"


def test_the_driver_program_is_found_without_importing_it() -> None:
    before = set(sys.modules)
    assert driver_program() == ROOT / "spark_jobs" / "main.py"
    assert not {name for name in set(sys.modules) - before if name.startswith("spark_jobs")}


def test_a_connection_test_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good, message = hook(monkeypatch, work_dir=str(tmp_path / "w")).test_connection()
    assert (good, message) == (True, "Jobs run with the runner inline")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"oops": 1}, "oops"),
        ({"work_dir": "/proc/nope"}, "work_dir"),
        ({"python": "/no/such/python3"}, "interpreter"),
        ({"runner": "spark_submit", "spark_binary": "/no/such/spark-submit"}, "spark-submit"),
        ({"runner": "spark_connect"}, "connect_url"),
    ]
    for extra, word in cases:
        good, message = hook(monkeypatch, **{"work_dir": str(tmp_path), **extra}).test_connection()
        assert not good
        assert word in message


@pytest.mark.parametrize("there", [True, False])
def test_a_connection_test_lists_a_local_root_that_may_be_on_other_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, there: bool
) -> None:
    root = tmp_path / "lake"
    if there:
        root.mkdir()
    good, message = hook(monkeypatch, work_dir=str(tmp_path), allowed_roots=[str(root)]).test_connection()
    found = "can be listed" if there else "does not exist on this machine"
    assert (good, message) == (True, f"Jobs run with the runner inline; the allowed root {root} {found}")
    assert root.exists() is there


def test_a_connection_test_says_that_a_root_cannot_be_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    good, message = hook(
        monkeypatch, work_dir=str(tmp_path), allowed_roots=[f"{tmp_path}/file"]
    ).test_connection()
    assert not good
    assert f"The allowed root {tmp_path}/file cannot be listed" in message


def test_a_connection_test_reaches_the_connect_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"sc://127.0.0.1:{server.getsockname()[1]}"
        extra = {"runner": "spark_connect", "connect_url": url, "work_dir": str(tmp_path)}
        assert hook(monkeypatch, **extra).test_connection()[0]
    good, message = hook(monkeypatch, **extra).test_connection()
    assert not good
    assert "does not answer" in message


def test_a_result_is_read_back_from_the_work_dir_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work_dir = tmp_path / "work"
    directory = RunDirectory.create(
        work_dir, dag_id="d", run_id="manual__2026-01-01T00:00:00+00:00", task_id="g.t", map_index=-1,
        try_number=1, job_id="j1",
    )  # fmt: skip
    result = JobResult(job_id="j1", kind="optimize", status=JobStatus.SUCCEEDED, version_to=4)
    directory.write_result(result)
    subject = hook(monkeypatch, work_dir=str(work_dir))
    assert subject.read_result(directory.result_uri) == result
    elsewhere = tmp_path / "result.json"
    elsewhere.write_bytes(directory.result_path.read_bytes())
    for uri in (elsewhere.as_uri(), f"{work_dir.as_uri()}/../result.json", "https://host/x"):
        with pytest.raises(ConfigurationError, match="work_dir"):
            subject.read_result(uri)
    directory.result_path.unlink()
    with pytest.raises(JobFailedError, match="no result"):
        subject.read_result(directory.result_uri)


def test_run_directories_are_private_and_names_cannot_leave_the_work_dir(tmp_path: Path) -> None:
    directory = RunDirectory.create(
        tmp_path, dag_id="..", run_id="a/../../b", task_id="t", map_index=0, try_number=2, job_id="j"
    )
    assert directory.path.resolve().is_relative_to(tmp_path)
    assert len(directory.path.relative_to(tmp_path).parts) == 5
    assert directory.path.stat().st_mode & 0o077 == 0
    assert path_component("..") == "%2E%2E"


def test_a_run_state_moves_forward_only_and_survives_json() -> None:
    state = RunState(job_id="j", runner="inline", started_ms=5)
    assert not state.is_terminal
    done = state.advance(RunPhase.RUNNING, process_group=7).advance(RunPhase.SUCCEEDED, finished_ms=9)
    assert done.is_terminal
    assert done.is_successful
    assert RunState.from_json(json.loads(json.dumps(done.to_json()))) == done
    with pytest.raises(ValueError, match="cannot become"):
        done.advance(RunPhase.RUNNING)
    with pytest.raises(ValueError, match="cannot become"):
        state.advance(RunPhase.SUCCEEDED)
