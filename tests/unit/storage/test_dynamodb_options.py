"""Which DynamoDB table is asked, where, and by whom: as the S3 client and the `deltalake` package find it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import ConfigurationError
from delta_core.storage.cached import without_cache
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.open import open_store
from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore

ON = {"s3_locking_provider": "dynamodb"}
SHARED = """
[profile prod]
region = eu-central-1
aws_access_key_id = PRODKEY
aws_secret_access_key = y
"""


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("AWS_", "DELTA_")):
            monkeypatch.delenv(name)
    (tmp_path / "config").write_text(SHARED)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def _opened(**options: str) -> S3DynamoDbLogStore:
    store = without_cache(open_store("s3://bucket/t", storage_options=options))
    assert isinstance(store, S3DynamoDbLogStore)
    return store


def _clients(**options: str) -> tuple[Any, Any]:
    return _opened(**ON, **options)._entries._clients()


def _keys(client: Any) -> str:
    return str(client._request_signer._credentials.access_key)


@pytest.mark.parametrize(
    ("variables", "options", "region"),
    [
        ({}, {}, "us-east-1"),
        ({"AWS_REGION": "eu-west-1"}, {}, "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-2"}, {}, "eu-west-2"),
        ({"AWS_DEFAULT_REGION": "eu-west-2", "AWS_REGION": "eu-west-1"}, {}, "eu-west-1"),
        ({"AWS_REGION": "eu-west-1"}, {"region": "eu-north-1"}, "eu-north-1"),
        ({"AWS_REGION_DYNAMODB": "eu-west-3"}, {"region": "eu-north-1"}, "eu-west-3"),
        ({"AWS_REGION_DYNAMODB": "eu-west-3"}, {"region_dynamodb": "eu-south-1"}, "eu-south-1"),
        ({}, {"profile": "prod"}, "eu-central-1"),
        ({"AWS_PROFILE": "prod"}, {}, "eu-central-1"),
    ],
)
def test_the_region_is_the_one_of_s3(
    variables: dict[str, str], options: dict[str, str], region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert {client.meta.region_name for client in _clients(**options)} == {region}


@pytest.mark.parametrize(
    ("variables", "options", "key"),
    [
        ({"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "x"}, {}, "ENV"),
        ({"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "x"}, {"profile": "prod"}, "PRODKEY"),
        ({"AWS_PROFILE": "prod"}, {}, "PRODKEY"),
        ({"AWS_PROFILE": "prod"}, {"access_key_id": "OWN", "secret_access_key": "x"}, "OWN"),
        (
            {"AWS_ACCESS_KEY_ID_DYNAMODB": "TABLE", "AWS_SECRET_ACCESS_KEY_DYNAMODB": "x"},
            {"access_key_id": "OWN", "secret_access_key": "x"},
            "TABLE",
        ),
    ],
)
def test_dynamodb_is_asked_in_the_name_that_asks_s3(
    variables: dict[str, str], options: dict[str, str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert {_keys(client) for client in _clients(**options)} == {key}


def test_the_environment_turns_it_on_and_names_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(without_cache(open_store("s3://bucket/t")), ObjectLogStore)
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9")
    assert "'delta_log'" in repr(_opened())
    monkeypatch.setenv("DELTA_DYNAMO_TABLE_NAME", "locks")
    assert "'locks'" in repr(_opened())
    assert "'other'" in repr(_opened(dynamo_table_name="other"))
    assert _opened()._entries._clients()[1].meta.endpoint_url == "http://127.0.0.1:9"
    off = without_cache(open_store("s3://bucket/t", storage_options={"s3_locking_provider": "none"}))
    assert isinstance(off, ObjectLogStore)


@pytest.mark.parametrize("name", ["AWS_S3_LOCKING_PROVIDER", "AWS_ENDPOINT_URL_DYNAMODB"])
def test_the_environment_is_checked_as_options_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    monkeypatch.setenv(name, "http://169.254.169.254/")
    with pytest.raises(ConfigurationError):
        open_store("s3://bucket/t")


@pytest.mark.parametrize(
    "options",
    [
        {"role_arn": "arn:aws:iam::1:role/r"},
        {"web_identity_token_file": "/token"},
        {"container_credentials_full_uri": "http://127.0.0.1/c"},
        {"access_key_id_dynamodb": "a"},
    ],
)
def test_credentials_that_only_s3_would_use_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        _opened(**ON, **options)


@pytest.mark.parametrize("provider", [{}, ON])
def test_a_profile_that_is_not_there_is_named(provider: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="profile 'gone' cannot be read"):
        open_store("s3://bucket/t", storage_options={**provider, "profile": "gone"})


def test_what_boto3_refuses_is_no_store_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "gone")
    store = _opened(**ON, access_key_id="a", secret_access_key="b")
    with pytest.raises(ConfigurationError, match="client of the DynamoDB table 'delta_log'"):
        store.list_directory("_delta_log")
