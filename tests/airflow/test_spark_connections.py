"""Jobs on a company's own `spark` and `spark_connect` connections, as far as the command that starts them."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit as provider
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.hooks.settings import ConnectionSettings, RunnerName
from delta_airflow.hooks.spark_connection import chosen_runner, require_reachable_job
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.spark_base import SparkOperator
from delta_airflow.operators.vacuum import DeltaVacuumOperator
from delta_airflow.runners.driver import CONNECT_TOKEN_VARIABLE, SPARK_CONF_VARIABLE
from delta_airflow.runners.spark_provider import command_of, connect_target
from delta_airflow.spark_arguments import SPARK_ARGUMENTS, SparkArguments
from delta_airflow.spark_conf import FIXED_CONF
from delta_airflow.spark_parsing import parse_spark_arguments
from delta_core.errors import ConfigurationError
from spark_jobs import session
from spark_jobs.environment_conf import VARIABLE
from tests.support.airflow import connection_json
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


# ------------------------------------------------------------ what spark-submit gets


def test_an_existing_spark_connection_says_where_and_how(
    monkeypatch: pytest.MonkeyPatch, kept: KeptSubmission
) -> None:
    extra = {
        "queue": "etl",
        "deploy-mode": "client",
        "principal": "etl@EXAMPLE",
        "spark.executor.instances": "3",
        "conf": {"spark.sql.shuffle.partitions": 7, "spark.speculation": True},
        "packages": "org.example:a:1",
        "py-files": "/opt/a.zip",
        "executor-memory": "2g",
        "somebody_elses": {"a": 1},
    }
    company(monkeypatch, conn_type="spark", host="yarn", extra=extra)

    summary = optimize(spark_conn_id="company").execute(context())

    assert summary["status"] == "succeeded"
    submission = kept.read()
    assert submission.options() == {
        "--master": "yarn",
        "--deploy-mode": "client",
        "--queue": "etl",
        "--principal": "etl@EXAMPLE",
        "--packages": "org.example:a:1",
        "--py-files": "/opt/a.zip",
        "--executor-memory": "2g",
        "--name": f"deltaward-optimize-{summary['job_id']}",
    }
    assert submission.conf() == {
        "spark.executor.instances": "3",
        "spark.sql.shuffle.partitions": "7",
        "spark.speculation": "true",
    }
    assert submission.arguments[-1] == submission.options()["--name"]


def test_an_operators_arguments_win_over_the_connection(
    monkeypatch: pytest.MonkeyPatch, kept: KeptSubmission, tmp_path: Path
) -> None:
    keytab = tmp_path / "etl.keytab"
    keytab.write_text("k")
    company(
        monkeypatch,
        conn_type="spark",
        host="yarn",
        extra={"queue": "other", "principal": "other", "packages": "org.example:other:1", "spark.a": "other"},
    )
    install(monkeypatch, tmp_path / "bin", name="spark3-submit")
    strings = {
        "packages": "org.example:a:1,org.example:b:2",
        "exclude_packages": "org.example:c",
        "repositories": "https://maven.example/r",
        "jars": "/opt/a.jar",
        "files": "/etc/hive-site.xml",
        "py_files": "/opt/a.zip",
        "archives": "/opt/env.tar.gz#env",
        "driver_class_path": "/opt/cp",
        "executor_memory": "4g",
        "driver_memory": "3g",
        "keytab": str(keytab),
        "principal": "etl@EXAMPLE",
        "proxy_user": "ann",
        "properties_file": "/etc/etl.conf",
        "name": "nightly",
    }
    operator = optimize(
        **{name: f"{{{{ '{value}' }}}}" for name, value in strings.items()},
        spark_conn_id="{{ 'company' }}",
        spark_conf={"spark.a": "{{ 'own' }}", "spark.b": 1.5},
        total_executor_cores="{{ 8 }}",
        executor_cores=2,
        num_executors="4",
        yarn_queue="{{ 'etl' }}",
        deploy_mode="client",
        env_vars={"HADOOP_USER_NAME": "{{ 'ann' }}"},
        spark_binary="spark3-submit",
    )
    operator.render_template_fields({})  # type: ignore[typeddict-item]
    operator.execute(context())

    submission = kept.read()
    spelled = {"py_files": "py-files", "exclude_packages": "exclude-packages", "proxy_user": "proxy-user"}
    options = {f"--{spelled.get(name, name).replace('_', '-')}": value for name, value in strings.items()}
    assert submission.options() == {
        **options,
        "--master": "yarn",
        "--deploy-mode": "client",
        "--queue": "etl",
        "--total-executor-cores": "8",
        "--executor-cores": "2",
        "--num-executors": "4",
    }
    assert submission.conf() == {
        "spark.a": "own",
        "spark.b": "1.5",
        "spark.yarn.appMasterEnv.HADOOP_USER_NAME": "ann",
    }
    assert submission.environment["HADOOP_USER_NAME"] == "ann"
    assert submission.arguments[-2:] == ["--app-name", "nightly"]


def test_the_command_line_is_made_by_the_providers_hook(
    monkeypatch: pytest.MonkeyPatch, kept: KeptSubmission
) -> None:
    company(monkeypatch, **STANDALONE)
    made = []
    build = provider.SparkSubmitHook._build_spark_submit_command

    def remember(hook: provider.SparkSubmitHook, application: str) -> list[str]:
        made.append(build(hook, application))
        return made[-1]

    monkeypatch.setattr(provider.SparkSubmitHook, "_build_spark_submit_command", remember)
    optimize(spark_conn_id="company").execute(context())
    assert kept.read().arguments == made[0][1:]
    assert kept.read().options()["--master"] == "spark://master:7077"


@pytest.mark.parametrize(
    ("connection", "master"),
    [
        ({"conn_type": "spark", "host": "local[2]"}, "local[2]"),
        ({"conn_type": "spark", "host": "yarn"}, "yarn"),
        (STANDALONE, "spark://master:7077"),
        ({"conn_type": "spark", "host": "master", "port": 7077}, "spark://master:7077"),
        ({"conn_type": "spark", "host": "spark://a:7077,b:7077"}, "spark://a:7077,b:7077"),
        ({"conn_type": "spark", "host": "k8s://https://api.example:443"}, "k8s://https://api.example:443"),
    ],
)
def test_the_master_is_the_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, connection: dict[str, Any], master: str
) -> None:
    company(monkeypatch, **connection)
    # Only that it can be imported matters: a driver in client mode is no pod.
    monkeypatch.setattr(provider, "kube_client", object(), raising=False)
    arguments = command(tmp_path, spark_conn_id="company").arguments
    assert arguments[arguments.index("--master") + 1] == master
    assert ("spark.driver.bindAddress=127.0.0.1" in arguments) is master.startswith("local")


def test_a_connection_given_as_a_uri_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_COMPANY", "spark://master:7077?queue=etl&spark.a=b")
    text = " ".join(command(tmp_path, spark_conn_id="company").arguments)
    assert "--master spark://master:7077 --conf spark.a=b" in text
    assert "--queue etl" in text


def test_kubernetes_namespace_is_the_connections(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    company(monkeypatch, conn_type="spark", host="k8s://https://api.example", extra={"namespace": "etl"})
    monkeypatch.setattr(provider, "kube_client", object(), raising=False)
    made = command(tmp_path, spark_conn_id="company", env_vars={"LANG": "C"})
    assert "spark.kubernetes.namespace=etl" in made.arguments
    # The driver is a process of this worker, no pod.
    assert made.environment["LANG"] == "C"


def test_a_master_on_kubernetes_needs_its_provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    company(monkeypatch, conn_type="spark", host="k8s://https://api.example")
    monkeypatch.delattr(provider, "kube_client", raising=False)
    with pytest.raises(ConfigurationError, match="Kubernetes provider"):
        command(tmp_path, spark_conn_id="company")


def test_a_ticket_cache_is_taken_when_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    company(monkeypatch, **STANDALONE)
    arguments = {"spark_conn_id": "company", "use_krb5ccache": "true", "principal": "etl"}
    monkeypatch.delenv("KRB5CCNAME", raising=False)
    with pytest.raises(ConfigurationError, match="KRB5CCNAME"):
        command(tmp_path, **arguments)
    monkeypatch.setenv("KRB5CCNAME", "/tmp/krb5cc_1")
    made = command(tmp_path, **arguments)
    assert "spark.kerberos.renewal.credentials=ccache" in made.arguments
    assert made.environment["KRB5CCNAME"] == "/tmp/krb5cc_1"


def test_without_a_spark_connection_the_arguments_go_to_the_connections_own_spark(
    monkeypatch: pytest.MonkeyPatch, kept: KeptSubmission, tmp_path: Path
) -> None:
    value = connection_json(runner="spark_submit", master="spark://h:7077", work_dir=str(tmp_path / "w"))
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", value)
    optimize(executor_memory="4g", jars=["/a.jar", "/b.jar"], yarn_queue="etl").execute(context())
    assert {"--master": "spark://h:7077", "--executor-memory": "4g", "--jars": "/a.jar,/b.jar"}.items() <= (
        kept.read().options().items()
    )


def test_a_master_that_nobody_names_is_left_to_sparks_configuration(tmp_path: Path) -> None:
    arguments = command(tmp_path, num_executors=2).arguments
    assert "--master" not in arguments
    assert arguments[1:3] == ("--conf", "spark.ui.enabled=false")
    assert arguments[arguments.index("--num-executors") + 1] == "2"


def test_an_operator_that_says_nothing_to_spark_starts_as_before(
    monkeypatch: pytest.MonkeyPatch, kept: KeptSubmission, tmp_path: Path
) -> None:
    value = connection_json(runner="spark_submit", master="spark://h:7077", work_dir=str(tmp_path / "w"))
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", value)
    summary = optimize().execute(context())
    assert kept.read().arguments[:6] == [
        *("--name", f"deltaward-optimize-{summary['job_id']}"),
        *("--master", "spark://h:7077", "--deploy-mode", "client"),
    ]
    assert "--app-name" not in kept.read().arguments


def test_the_binary_is_the_operators_or_the_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("spark-submit", "spark2-submit", "spark3-submit"):
        install(monkeypatch, tmp_path / name, name=name)
    elsewhere = tmp_path / "elsewhere"
    install(monkeypatch, elsewhere)
    settings = ConnectionSettings(spark_binary=str(elsewhere / "spark-submit"))

    def binary(**arguments: Any) -> str:
        return command(tmp_path, settings, spark_conn_id="company", **arguments).arguments[0]

    company(monkeypatch, **STANDALONE)
    assert binary() == str(elsewhere / "spark-submit")
    company(monkeypatch, **STANDALONE, extra={"spark-binary": "spark2-submit"})
    assert binary() == str(tmp_path / "spark2-submit" / "spark2-submit")
    assert binary(spark_binary="spark3-submit") == str(tmp_path / "spark3-submit" / "spark3-submit")
    company(monkeypatch, **STANDALONE, extra={"spark-binary": "/bin/sh"})
    with pytest.raises(ConfigurationError, match="spark-binary"):
        binary()
    for refused in ("/bin/sh", "bin/spark-submit"):
        with pytest.raises(ConfigurationError, match="spark_binary"):
            binary(spark_binary=refused)
    with pytest.raises(ConfigurationError, match="not on this worker"):
        binary(spark_binary="/nowhere/spark-submit")


# ------------------------------------------------------------ Spark Connect


def test_the_same_dag_runs_on_a_connect_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    company(
        monkeypatch, **CONNECT, login="etl", password=f"{CANARY}/;=%", extra={"use_ssl": True, "spark.a": "b"}
    )
    made = command(
        tmp_path,
        ConnectionSettings(connect_url="sc://other", connect_token="others-token"),
        spark_conn_id="company",
        spark_conf={"spark.sql.shuffle.partitions": 4},
        name="nightly",
    )
    assert made.arguments[1:3] == ("-m", "spark_jobs.main")
    assert made.arguments[-4:] == (
        *("--remote", "sc://connect.example:15002/;user_id=etl;use_ssl=True"),
        *("--app-name", "nightly"),
    )
    assert made.environment[CONNECT_TOKEN_VARIABLE] == f"{CANARY}/;=%"
    assert json.loads(made.environment[SPARK_CONF_VARIABLE]) == {
        "spark.a": "b",
        "spark.sql.shuffle.partitions": "4",
    }
    assert CANARY not in " ".join(made.arguments) + repr(made)


def test_a_token_of_another_server_is_not_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = ConnectionSettings(connect_url="sc://other", connect_token=CANARY)
    for connection in (CONNECT, STANDALONE):
        company(monkeypatch, **connection)
        made = command(tmp_path, settings, spark_conn_id="company")
        assert CANARY not in json.dumps(dict(made.environment))


def test_what_starts_an_application_means_nothing_to_a_connect_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    company(monkeypatch, **CONNECT)
    with pytest.raises(ConfigurationError, match="no use for packages, yarn_queue"):
        command(tmp_path, spark_conn_id="company", packages="a:b:1", yarn_queue="etl")
    with pytest.raises(ConfigurationError, match="no use for executor_memory"):
        command_of(
            RunnerName.SPARK_CONNECT,
            SparkArguments(executor_memory="1g"),
            ConnectionSettings(connect_url="sc://h"),
        )


@pytest.mark.parametrize(
    "connection",
    [
        {"conn_type": "spark_connect"},
        {"conn_type": "spark_connect", "host": "sc://h/path"},
        {"conn_type": "spark_connect", "host": f"sc://user:{CANARY}@h"},
    ],
)
def test_a_connect_connection_without_a_usable_server_is_refused(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any]
) -> None:
    company(monkeypatch, **connection)
    with pytest.raises(ConfigurationError, match="company") as caught:
        connect_target("company")
    assert CANARY not in str(caught.value)


# ------------------------------------------------------------ which runner


@pytest.mark.parametrize(
    ("connection", "runner"),
    [(STANDALONE, RunnerName.SPARK_SUBMIT), (CONNECT, RunnerName.SPARK_CONNECT)],
)
def test_the_connections_type_is_the_runner(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], runner: RunnerName
) -> None:
    company(monkeypatch, **connection)
    spark = SparkArguments(spark_conn_id="company")
    for named in (None, runner):
        assert chosen_runner(spark, named=named, otherwise=RunnerName.INLINE) is runner
    for named in set(RunnerName) - {runner}:
        with pytest.raises(ConfigurationError, match=rf"{named} contradicts the connection company"):
            chosen_runner(spark, named=named, otherwise=runner)


def test_an_operator_that_runs_inline_by_itself_goes_to_its_spark_connection(
    monkeypatch: pytest.MonkeyPatch, kept: KeptSubmission
) -> None:
    company(monkeypatch, **STANDALONE)
    DeltaVacuumOperator(task_id="t", table_uri="/data/t", spark_conn_id="company").execute(context())
    assert kept.read().options()["--master"] == "spark://master:7077"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"spark_conn_id": "company", "runner": "inline"}, "inline contradicts the connection company"),
        ({"spark_conn_id": "nowhere"}, "connection nowhere does not exist"),
        ({"spark_conn_id": "deltaward_default"}, "is of type deltaward"),
        ({"executor_memory": "1g"}, "inline does not use Spark"),
        ({"spark_conn_id": "company", "deploy_mode": "cluster"}, "Use client mode"),
        ({"spark_conn_id": "company", "deploy_mode": "there"}, "deploy_mode is not valid"),
        ({"spark_conn_id": "company", "executor_cores": "two"}, "executor_cores is not valid"),
        ({"spark_conn_id": "company", "num_executors": 0}, "num_executors is not valid"),
        ({"spark_conn_id": "company", "use_krb5ccache": "perhaps"}, "use_krb5ccache is not valid"),
        ({"spark_conn_id": "company", "packages": ["a,b"]}, "packages is not valid"),
        ({"spark_conn_id": "company", "name": "a\nb"}, "name is not valid"),
        ({"spark_conn_id": "company", "spark_conf": {"master": "x"}}, "may not set master"),
        ({"spark_conn_id": "company", "spark_conf": {"spark.master": "x"}}, "Spark connection"),
        ({"spark_conn_id": "company", "spark_conf": {"spark.app.name": "x"}}, "argument name"),
        ({"spark_conn_id": "company", "spark_conf": {"spark.yarn.queue": "x"}}, "argument yarn_queue"),
        ({"spark_conn_id": "company", "spark_conf": {"spark.submit.deployMode": "x"}}, "deploy_mode"),
        (
            {"spark_conn_id": "company", "spark_conf": {"spark.sql.ansi.enabled": False}},
            "same meaning everywhere",
        ),
        ({"spark_conn_id": "company", "spark_conf": {"spark.a": None}}, "'spark.a' in the argument"),
        ({"spark_conn_id": "company", "spark_conf": {"spark.a": ["x"]}}, "'spark.a' in the argument"),
        ({"spark_conn_id": "company", "spark_conf": "[1]"}, "spark_conf is not valid"),
        (
            {"spark_conn_id": "company", "env_vars": {"DELTAWARD_STORAGE_OPTIONS": "{}"}},
            "reserved for the driver",
        ),
    ],
)
def test_what_cannot_be_done_fails_the_task_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, kept: KeptSubmission, arguments: dict[str, Any], message: str
) -> None:
    company(monkeypatch, **STANDALONE)
    with pytest.raises(AirflowFailException, match=message) as caught:
        optimize(**arguments).execute(context())
    assert "INVALID_CONFIGURATION" in str(caught.value)
    assert not kept.path.exists()


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ({"conn_type": "spark"}, "has no master"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}, "Use client mode"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"spark.submit.deployMode": "cluster"}}, "client"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"keytab": CANARY[:5]}}, "not valid base64"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"conf": [CANARY]}}, "extra conf of the connection"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"spark-home": "/x"}}, "spark-home"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"num-executors": "x"}}, "extra of the connection"),
        ({"conn_type": "spark", "host": "yarn", "extra": f'{{"queue": "{CANARY}",}}'}, "not a JSON object"),
    ],
)
def test_a_spark_connection_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, connection: dict[str, Any], message: str
) -> None:
    company(monkeypatch, **connection)
    with pytest.raises(ConfigurationError, match=message) as caught:
        command(tmp_path, spark_conn_id="company")
    assert CANARY not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_driver_elsewhere_needs_files_that_it_can_reach_and_no_secret() -> None:
    assert require_reachable_job(None, spec="/runs/spec.json", secrets=True) == "client"
    assert require_reachable_job("client", spec="/runs/spec.json", secrets=True) == "client"
    assert require_reachable_job("cluster", spec="s3://bucket/spec.json", secrets=False) == "cluster"
    for spec in ("/runs/spec.json", "file:///runs/spec.json", Path("/runs/spec.json")):
        with pytest.raises(ConfigurationError, match="client mode"):
            require_reachable_job("cluster", spec=spec, secrets=False)
    with pytest.raises(ConfigurationError, match="client mode"):
        require_reachable_job("cluster", spec="s3://bucket/spec.json", secrets=True)


# ------------------------------------------------------------ the arguments themselves


def test_every_argument_is_the_providers_and_templated() -> None:
    ours = set(inspect.signature(SparkOperator.__init__).parameters) - {"self", "kwargs"}
    assert ours == set(SPARK_ARGUMENTS)
    providers = set(inspect.signature(SparkSubmitOperator.__init__).parameters)
    assert ours - providers == {"spark_conn_id", "spark_conf"}
    assert providers - ours == {
        *("self", "kwargs", "conf", "conn_id", "application", "application_args", "java_class"),
        *("verbose", "status_poll_interval", "post_submit_commands", "durable", "reconnect_on_retry"),
        *("track_driver_via_k8s_api", "yarn_track_via_rm_api", "yarn_rm_auth"),
        *("openlineage_inject_parent_job_info", "openlineage_inject_transport_info"),
    }
    assert set(SPARK_ARGUMENTS) <= set(DeltaTableOperator.template_fields)


def test_no_operator_has_another_argument_of_one_of_these_names() -> None:
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    for operator in below(DeltaTableOperator):
        own = vars(operator).get("__init__")
        names = set() if own is None else set(inspect.signature(own).parameters)
        assert not names & set(SPARK_ARGUMENTS), operator


def test_the_dags_defaults_reach_every_operator() -> None:
    defaults = {"spark_conn_id": "company", "spark_conf": {"spark.a": "b"}, "executor_memory": "2g"}
    with DAG("d", schedule=None, default_args=defaults):
        load = DeltaLoadOperator(task_id="l", table_uri="/t", source={"format": "csv", "uris": ["/x"]})
        mapped = DeltaOptimizeOperator.partial(task_id="o", num_executors=2).expand(table_uri=["/a", "/b"])
    assert load.spark_arguments() == SparkArguments(
        spark_conn_id="company", spark_conf={"spark.a": "b"}, executor_memory="2g"
    )
    unmapped = mapped.unmap({"table_uri": "/a"})
    assert (unmapped.spark_conn_id, unmapped.executor_memory) == ("company", "2g")
    assert unmapped.num_executors == 2
    with DAG("e", schedule=None, default_args=defaults):
        own = DeltaVacuumOperator(task_id="v", table_uri="/t", spark_conn_id=None)
    assert own.spark_conn_id is None


def test_templates_that_render_nothing_say_nothing() -> None:
    empty = dict(zip(SPARK_ARGUMENTS, ["", "None", "null", " "] * 8, strict=False))
    assert parse_spark_arguments(empty) == SparkArguments()
    assert SparkArguments().given() == ()


def test_the_settings_that_jobs_keep_to_themselves_are_those_of_their_session() -> None:
    assert session._SQL_CONF.keys() == FIXED_CONF
    assert SPARK_CONF_VARIABLE == VARIABLE


def test_a_connections_settings_that_jobs_keep_to_themselves_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    company(monkeypatch, **STANDALONE, extra={"spark.sql.ansi.enabled": "false", "spark.master": "yarn"})
    arguments = command(tmp_path, spark_conn_id="company").arguments
    assert not any("ansi" in word or "yarn" in word for word in arguments)
    assert "spark.sql.ansi.enabled" in caplog.text
