from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.core_api.datamodels.connections import ConnectionResponse

from delta_airflow.hooks.settings import EXTRA_NAMES, STORAGE_OPTIONS, RunnerName, parse_settings
from delta_airflow.provider_info import get_provider_info
from delta_core.errors import ConfigurationError
from delta_core.storage.open import open_store
from delta_core.storage.option_names import WEBHDFS_OPTIONS, is_option, is_secret


def test_nothing_given_is_an_inline_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    settings = parse_settings({})
    assert settings.runner is RunnerName.INLINE
    assert settings.work_dir == tmp_path / "deltaward"
    assert settings.allowed_roots == ()


def test_what_the_form_leaves_empty_counts_as_not_given() -> None:
    settings = parse_settings({"runner": "", "master": None, "allowed_roots": "", "storage_options": ""})
    assert settings.runner is RunnerName.INLINE
    assert settings.master is None


def test_every_extra_is_read() -> None:
    settings = parse_settings(
        {
            "runner": "spark_connect",
            "master": "local[2]",
            "connect_url": "sc://127.0.0.1:15002",
            "python": "/opt/venv/bin/python3.11",
            "spark_binary": "/opt/spark/bin/spark-submit",
            "work_dir": "/var/lib/deltaward",
            "allowed_roots": "/data, file:///lake",
            "storage_options": '{"aws_region": "eu-west-1"}',
            "storage_conn_id": "aws_lake",
            "deadline_seconds": "3600",
        },
        password="t0ken",
    )
    assert settings.runner is RunnerName.SPARK_CONNECT
    assert settings.allowed_roots == ("/data", "file:///lake")
    assert settings.storage_options == {"aws_region": "eu-west-1"}
    assert settings.storage_conn_id == "aws_lake"
    assert settings.deadline_seconds == 3600
    assert settings.connect_token == "t0ken"


def test_an_unknown_extra_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"does not know: deadline, runer") as caught:
        parse_settings({"runer": "inline", "deadline": 3, "work_dir": "/x"})
    assert "spark_binary" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("runner", "yarn"),
        ("master", "local[2] --conf x=y"),
        ("master", "mesos://h:1"),
        ("connect_url", "http://127.0.0.1:15002"),
        ("connect_url", "sc://127.0.0.1:15002/;token=abc"),
        ("connect_url", "sc://user:pw@127.0.0.1:15002"),
        ("connect_url", "sc://127.0.0.1:port"),
        ("python", "python3"),
        ("python", "/bin/sh"),
        ("python", "/usr/bin/python3; rm -rf"),
        ("spark_binary", "/bin/bash"),
        ("spark_binary", "bin/spark-submit"),
        ("work_dir", "relative/path"),
        ("work_dir", "file://host/runs"),
        ("work_dir", "s3:///runs"),
        ("work_dir", "s3://user:secret@bucket/runs"),
        ("work_dir", "s3://bucket/a/../b"),
        ("storage_conn_id", 3),
        ("allowed_roots", {"a": 1}),
        ("allowed_roots", ["/data", "lake"]),
        ("allowed_roots", "./lake"),
        ("allowed_roots", "s3://bucket/a/../b"),
        ("allowed_roots", '["/data"'),
        ("storage_options", "not json"),
        ("storage_options", {"aws_region": ["x"]}),
        ("storage_options", {"aws_region": None}),
        ("deadline_seconds", -1),
        ("deadline_seconds", "nan"),
        ("deadline_seconds", True),
        ("deadline_seconds", "soon"),
    ],
)
def test_a_value_that_is_not_valid_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        parse_settings({name: value})


@pytest.mark.parametrize("given", ['["/data", "~/lake"]', "/data, ~/lake", ["/data", "~/lake"]])
def test_roots_are_a_list_its_json_or_separated_by_commas(given: str | list[str]) -> None:
    assert parse_settings({"allowed_roots": given}).allowed_roots == ("/data", "~/lake")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("/var/runs", Path("/var/runs")),
        ("file:///var/a%20b", Path("/var/a b")),
        ("s3a://bucket/runs/", "s3://bucket/runs"),
        ("gs://bucket", "gs://bucket"),
        ("abfs://c@a.dfs.core.windows.net/r", "abfss://c@a.dfs.core.windows.net/r"),
        ("hdfs://nn:8020/runs of mine", "hdfs://nn:8020/runs%20of%20mine"),
    ],
)
def test_a_work_dir_is_a_directory_here_or_in_a_store(given: str, found: Path | str) -> None:
    assert parse_settings({"work_dir": given}).work_dir == found


def test_storage_options_are_taken_by_allow_list_and_their_values_stay_out_of_messages() -> None:
    with pytest.raises(ConfigurationError, match="conditional_put") as caught:
        parse_settings({"storage_options": {"conditional_put": "hunter2", "aws_region": "x"}})
    assert "hunter2" not in str(caught.value)


MINIO = {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}


@pytest.mark.parametrize("spelling", ["AWS_ALLOW_HTTP", "aws_allow_http", "allow_http", "ALLOW_HTTP"])
@pytest.mark.parametrize("value", ["true", True])
def test_a_connection_takes_every_option_that_the_core_takes(spelling: str, value: str | bool) -> None:
    options = {**MINIO, "AWS_REGION": "us-east-1", spelling: value}
    settings = parse_settings({"storage_options": json.dumps(options)})
    assert settings.storage_options == {**options, spelling: "true"}
    assert open_store("s3://bucket/t", storage_options=settings.storage_options).uri == "s3://bucket/t"


@pytest.mark.parametrize("name", sorted(STORAGE_OPTIONS))
def test_options_are_known_in_upper_case_too(name: str) -> None:
    assert is_option(name)
    assert is_option(name.upper()) or name in WEBHDFS_OPTIONS


def test_a_secret_is_one_in_every_spelling() -> None:
    names = ("AWS_SECRET_ACCESS_KEY", "token", "azure_storage_sas_token", "GOOGLE_SERVICE_ACCOUNT_KEY")
    assert all(is_secret(name) for name in (*names, "delegation_token", "access_key", "account_key"))
    assert not any(is_secret(name) for name in ("aws_region", "allow_http", "timeout", "use_azure_cli"))


def test_secrets_are_not_in_the_repr() -> None:
    settings = parse_settings({"storage_options": {"aws_secret_access_key": "hunter2"}}, password="hunter3")
    assert "hunter" not in repr(settings)


def test_the_connection_form_offers_exactly_the_extras_that_are_read() -> None:
    (connection,) = get_provider_info()["connection-types"]
    assert set(connection["conn-fields"]) == EXTRA_NAMES


def test_airflow_hides_the_secrets_of_what_the_form_stores() -> None:
    (connection,) = get_provider_info()["connection-types"]
    assert connection["conn-fields"]["storage_options"]["schema"]["type"] == ["object", "null"]
    # docs/airflow.md says how Airflow learns these names.
    unknown_to_airflow = {"azure_storage_account_key", "azure_storage_sas_key", "aws_sse_customer_key_base64"}
    secrets = {name: f"canary-{name}" for name in STORAGE_OPTIONS if is_secret(name)}
    shown = ConnectionResponse.model_validate(
        {
            "connection_id": "lake",
            "conn_type": "deltaward",
            **dict.fromkeys(("description", "host", "login", "schema", "port", "password", "team_name")),
            "extra": json.dumps({"storage_options": secrets}),
        }
    )
    assert set(re.findall(r"canary-(\w+)", str(shown.extra))) == unknown_to_airflow
