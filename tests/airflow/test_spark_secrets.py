"""Secrets of Spark connections, and secrets where none may be: 0 hits wherever somebody could look."""

from __future__ import annotations

import base64
import json
import logging
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.log import mask_secret

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.runners.driver import SPARK_CONF_VARIABLE
from delta_airflow.spark_arguments import SPARK_ARGUMENTS
from delta_airflow.spark_conf import is_secret
from delta_airflow.spark_parsing import parse_spark_arguments
from delta_core.errors import ConfigurationError
from spark_jobs.environment_conf import VARIABLE
from tests.support.airflow import AirflowHome, connection_json
from tests.support.repository import ROOT, code_blocks
from tests.support.spark_connections import (
    CANARY,
    CONNECT,
    STANDALONE,
    command,
    company,
    context,
    kept,
    optimize,
)
from tests.support.spark_submit import KeptSubmission, install

__all__ = ["kept"]


SECRET_EXTRA = {
    "queue": "etl",
    "keytab": base64.b64encode(CANARY.encode()).decode(),
    "principal": "etl",
    "spark.hadoop.fs.s3a.secret.key": f"{CANARY}1",
    "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": f"{CANARY}2",
    "conf": {"spark.authenticate.secret": f"{CANARY}3", "spark.plain": "seen"},
}


def test_no_secret_of_a_spark_connection_is_seen(
    monkeypatch: pytest.MonkeyPatch,
    kept: KeptSubmission,
    airflow_connection: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    company(monkeypatch, conn_type="spark", host="yarn", password=f"{CANARY}4", extra=SECRET_EXTRA)
    operator = optimize(spark_conn_id="company", spark_conf={"spark.own": "1"})
    operator.render_template_fields({})  # type: ignore[typeddict-item]
    with caplog.at_level(logging.DEBUG):
        summary = operator.execute(context())

    submission = kept.read()
    encoded = SECRET_EXTRA["keytab"]
    private = json.loads(submission.environment[VARIABLE])
    assert sorted(private.values()) == [f"{CANARY}{number}" for number in (1, 2, 3)]
    assert submission.keytab == ["0o600", CANARY]
    assert submission.conf() == {"spark.plain": "seen", "spark.own": "1"}
    rendered = {name: getattr(operator, name) for name in operator.template_fields}
    files = {str(path): path.read_text() for path in airflow_connection.rglob("*") if path.is_file()}
    assert len(files) >= 3
    output = caplog.text + "".join(capfd.readouterr())
    for seen in (submission.arguments, rendered, summary, files, output):
        assert CANARY not in json.dumps(seen)
        assert encoded not in json.dumps(seen)
    assert "Starting the driver" in output


@pytest.mark.slow
def test_the_pages_dag_runs_and_airflow_keeps_no_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, airflow_home: AirflowHome
) -> None:
    kept = install(monkeypatch, tmp_path / "bin")
    name, value, dag = page()
    connection = json.loads(value)
    connection["extra"] |= SECRET_EXTRA | {"queue": connection["extra"]["queue"]}
    (airflow_home.dags / "page.py").write_text(dag)
    environment = airflow_home.environment(
        AIRFLOW_CONN_DELTAWARD_DEFAULT=connection_json(work_dir=str(airflow_home.path / "work")),
        AIRFLOW_CONN_COMPANY_SPARK=json.dumps(connection),
    )
    assert name in environment
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "airflow" / "docs_worker.py"), "orders_on_yarn"],
        env=environment,
        cwd=airflow_home.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert '"state": "success"' in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    submission = kept.read()
    assert {
        "--master": "yarn",
        "--queue": "etl",
        "--executor-memory": "4g",
        "--name": "orders 2026-01-01",
    }.items() <= submission.options().items()
    assert submission.conf()["spark.dynamicAllocation.enabled"] == "true"
    assert submission.conf()["spark.sql.shuffle.partitions"] == "64"
    assert CANARY in submission.environment[VARIABLE]
    contents = {path: path.read_bytes() for path in airflow_home.path.rglob("*") if path.is_file()}
    # What was rendered is in the database.
    assert b"orders 2026-01-01" in contents[airflow_home.path / "airflow.db"]
    for content in (done.stdout.encode(), done.stderr.encode(), *contents.values()):
        assert CANARY.encode() not in content
        assert SECRET_EXTRA["keytab"].encode() not in content  # type: ignore[attr-defined]


def test_the_pages_connection_and_dag_fit_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name, value, dag = page()
    monkeypatch.setenv(name, value)
    names: dict[str, Any] = {}
    exec(compile(dag, "page.py", "exec"), names)
    (operator,) = names["dag"].tasks
    operator.render_template_fields({"params": {"day": "2026-01-01"}})
    arguments = {name: getattr(operator, name) for name in SPARK_ARGUMENTS}
    text = " ".join(command(tmp_path, **arguments).arguments)
    for part in ("--queue etl", "--executor-memory 4g", "spark.sql.shuffle.partitions=64"):
        assert part in text


def page() -> tuple[str, str, str]:
    """The variable that the page exports, its value, and the page's DAG."""
    exported, dag = (block.body for block in code_blocks("docs/spark-connections.md"))
    _, assignment = shlex.split(exported)
    name, _, value = assignment.partition("=")
    return name, value, dag


SECRETS = [
    {"spark.hadoop.fs.s3a.secret.key": CANARY},
    {"spark.hadoop.fs.s3a.access.key": CANARY},
    {"spark.hadoop.fs.s3a.accessKey": CANARY},
    {"spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": CANARY},
    {"spark.hadoop.fs.azure.sas.c.a.blob.core.windows.net": CANARY},
    {"spark.ssl.keyPassword": CANARY},
    {"SPARK.SSL.KEYPASSWORD": CANARY},
    {"spark.hadoop.fs.gs.auth.service.account.private.key": CANARY},
    {"spark.session.token": CANARY},
    {"spark.a.credential": CANARY},
    {"spark.driver.extraJavaOptions": f"-Djavax.net.ssl.trustStorePassword={CANARY}"},
    {"spark.jars.repositories": f"https://user:{CANARY}@maven.example/r"},
]


@pytest.mark.parametrize("settings", SECRETS)
def test_secrets_in_an_operators_settings_are_refused_before_airflow_keeps_them(
    settings: dict[str, str],
) -> None:
    for argument in ("spark_conf", "env_vars"):
        with pytest.raises(ConfigurationError, match=f"The argument {argument} holds a secret") as caught:
            optimize(spark_conn_id="company", **{argument: settings})
        assert CANARY not in str(caught.value)
        assert next(iter(settings)) in str(caught.value)
        assert "storage_options" in caught.value.fix
        later = optimize(spark_conn_id="company", **{argument: "{{ params.text }}"})
        later.render_template_fields({"params": {"text": json.dumps(settings)}})  # type: ignore[typeddict-item]
        with pytest.raises(ConfigurationError, match="holds a secret") as caught:
            later.spark_arguments()
        assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"repositories": f"https://user:{CANARY}@maven.example/r"},
        {"jars": ["/a.jar", f"https://store.example/b.jar?sig={CANARY}"]},
        {"name": f"token={CANARY}"},
        {"spark_conf": f'{{"spark.a.password": "{CANARY}"'},
        {"spark_conf": {"spark.a.b": {"password": CANARY}}},
    ],
)
def test_no_error_about_an_argument_shows_a_secret(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_spark_arguments(arguments)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_airflow_masks_is_a_secret_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    company(monkeypatch, **STANDALONE, password=f"{CANARY}-masked")
    operator = optimize(spark_conf={"spark.plain": "x-{{ conn_password }}"})
    password = DeltawardHook.get_connection("company").password
    # Airflow does so with every connection that a template reads.
    mask_secret(password)
    operator.render_template_fields({"conn_password": password})  # type: ignore[typeddict-item]
    with pytest.raises(ConfigurationError, match=r"holds a secret: spark\.plain"):
        operator.spark_arguments()


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.aws.credentials.provider",
        "spark.hadoop.hadoop.security.credential.provider.path",
        "spark.kerberos.renewal.credentials",
        "spark.security.credentials.hive.enabled",
        "spark.kubernetes.driver.secrets.etl",
        "spark.kubernetes.executor.secretKeyRef.PASSWORD",
        "spark.kubernetes.container.image.pullSecrets",
        "spark.kubernetes.authenticate.driver.oauthTokenFile",
        "HADOOP_TOKEN_FILE_LOCATION",
        "spark.executor.memory",
    ],
)
def test_settings_that_lead_to_a_secret_and_hold_none_are_taken(name: str) -> None:
    assert not is_secret(name, "value")


@pytest.mark.parametrize(
    "extra",
    [
        {"spark.driver.extraJavaOptions": f"-Dpassword={CANARY}"},
        {"conf": {"spark.jars.repositories": f"https://u:{CANARY}@h/r"}},
        {"repositories": f"https://u:{CANARY}@h/r"},
    ],
)
def test_a_connections_secret_that_would_become_an_argument_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, extra: dict[str, Any]
) -> None:
    company(monkeypatch, **STANDALONE, extra=extra)
    with pytest.raises(ConfigurationError, match="has a secret in") as caught:
        command(tmp_path, spark_conn_id="company")
    assert CANARY not in str(caught.value)


def test_a_secret_that_a_connect_servers_pages_would_show_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    company(monkeypatch, **CONNECT, extra={"spark.hadoop.fs.azure.account.key.a": CANARY})
    with pytest.raises(ConfigurationError, match="Connect server would show it") as caught:
        command(tmp_path, spark_conn_id="company")
    assert CANARY not in str(caught.value)
    company(monkeypatch, **CONNECT, extra={"spark.hadoop.fs.s3a.secret.key": CANARY})
    made = command(tmp_path, spark_conn_id="company")
    assert CANARY in made.environment[SPARK_CONF_VARIABLE]
    assert CANARY not in " ".join(made.arguments)


def test_a_keytab_goes_with_a_driver_that_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    company(monkeypatch, conn_type="spark", host="yarn", extra=SECRET_EXTRA)
    with pytest.raises(ConfigurationError, match="not on this worker"):
        command(tmp_path, spark_conn_id="company", spark_binary="/nowhere/spark-submit")
    assert not list(tmp_path.iterdir())
    made = command(tmp_path, spark_conn_id="company")
    assert made.private_file == tmp_path / "keytab"


@pytest.mark.parametrize(
    "settings",
    [
        {"spark_conf": '{"spark.hadoop.fs.s3a.secret.key": "abc"}'},
        {"spark_conf": {"spark.jdbc.pwd": "abc"}},
        {"env_vars": '{"FERNET_KEY": "abc"}'},
        {"env_vars": {"DB_PASS": "abc"}},
        {"env_vars": {"INDEX": "https://ghp_abc@host/simple"}},
        {"spark_conf": "--conf spark.ssl.keyPassword=abc"},
    ],
)
def test_a_secret_is_refused_before_airflow_keeps_it(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="holds a secret") as refused:
        optimize(spark_conn_id="company", **settings)
    assert "abc" not in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"spark_conf": '{"spark.own": "1"}'},
        {"spark_conf": "{{ params.conf }}"},
        {"env_vars": {"PATH": "/bin"}},
    ],
)
def test_what_is_no_secret_is_taken(settings: dict[str, Any]) -> None:
    assert optimize(spark_conn_id="company", **settings).task_id
