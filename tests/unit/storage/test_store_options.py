"""Options of remote stores: known ones in every spelling, others refused, values never shown."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from obstore.store import AzureStore

from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.storage import azure
from delta_core.storage.open import open_store
from delta_core.storage.service_address import is_metadata_service, require_service_address
from delta_core.storage.store_options import checked_options

SECRET = "hunter2/secret"


def checked(options: dict[str, str]) -> object:
    return checked_options(
        options,
        prefixes=("aws_", "s3_"),
        allowed=frozenset({"access_key_id", "endpoint", "skip_signature"}),
        aliases={"endpoint_url": "endpoint"},
        own=frozenset({"profile"}),
    )


def test_every_spelling_is_one_option() -> None:
    found = checked_options(
        {
            "AWS_ACCESS_KEY_ID": "k",
            "aws_endpoint_url": "http://h",
            "SKIP_SIGNATURE": "True",
            "aws_profile": "p",
            "timeout": "5s",
            "allow_http": "no",
        },
        prefixes=("aws_",),
        allowed=frozenset({"access_key_id", "endpoint", "skip_signature"}),
        aliases={"endpoint_url": "endpoint"},
        own=frozenset({"profile"}),
    )
    assert found.service == {"access_key_id": "k", "endpoint": "http://h", "skip_signature": True}
    assert found.client == {"timeout": "5s", "allow_http": False}
    assert found.own == {"profile": "p"}


@pytest.mark.parametrize(
    "options",
    [
        {"acces_key_id": SECRET},
        {"conditional_put": "disabled"},
        {"allow_invalid_certificates": "true"},
        {"access_key_id": "k", "AWS_ACCESS_KEY_ID": SECRET},
        {"skip_signature": SECRET},
    ],
)
def test_what_is_not_known_or_contradictory_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked(options)
    assert SECRET not in str(caught.value)


def test_values_do_not_show() -> None:
    assert SECRET not in repr(checked({"access_key_id": SECRET}))


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://[fe80::1]/",
        "http://0.0.0.0:9000",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://169.254.169.254./",
        "http://\uff11\uff16\uff19.254.169.254/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://metadata.google.internal/",
        "http://METADATA.google.internal./",
        "ftp://host/",
        "host:9000",
        "http://user:password@host/",
        "http://host/?token=1",
        "http://[broken/",
        "",
    ],
)
def test_an_endpoint_is_a_service_s_address(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        require_service_address("endpoint", url)
    assert "password" not in str(caught.value).replace("has a password", "")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9000",
        "http://10.0.0.5:9000",
        "http://[::1]:9000",
        "https://s3.eu-west-1.amazonaws.com",
        "https://0xstorage.example.com",
        "https://fefe.example.com",
    ],
)
def test_a_private_address_may_be_a_store_s(url: str) -> None:
    assert not is_metadata_service(urlsplit(url).hostname or "")
    assert require_service_address("endpoint", url) is None


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://bucket/t", {"endpoint": "http://169.254.169.254/"}),
        ("gs://bucket/t", {"base_url": "http://169.254.169.254/"}),
        ("az://container/t", {"account_name": "a", "endpoint": "http://169.254.169.254/"}),
        ("s3://bucket/t", {"s3_locking_provider": "zookeeper"}),
        (
            "s3://bucket/t",
            {"s3_locking_provider": "dynamodb", "endpoint_url_dynamodb": "http://169.254.169.254/"},
        ),
        ("az://container/t", {}),
    ],
)
def test_a_store_with_wrong_options_does_not_open(
    uri: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError):
        open_store(uri, storage_options=options)


@pytest.mark.parametrize(
    "uri",
    [
        "abfss://container/t",
        "abfss://container@host/t",
        "az://c@account.x/t",
        "abfss://c@account.dfs.example.com/t",
        "abfss://c@account.dfs.core.windows.net.example.com/t",
        "abfss://c@10.0.0.5/t",
        "abfss://c@.dfs.core.windows.net/t",
    ],
)
def test_azure_s_uris_name_container_and_account_as_their_scheme_does(uri: str) -> None:
    with pytest.raises(InvalidUriError):
        open_store(uri, storage_options={"account_key": "a2V5"})


def test_opening_makes_no_request_and_shows_no_key() -> None:
    store = open_store(
        "s3a://bucket/t",
        storage_options={
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_S3_LOCKING_PROVIDER": "dynamodb",
        },
    )
    assert store.uri == "s3://bucket/t"
    assert SECRET not in repr(store)


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://bucket/t", {"endpoint": "http://storage.example.com:9000"}),
        ("s3://bucket/t", {"endpoint": "HTTP://storage.example.com:9000", "allow_http": "false"}),
        ("gs://bucket/t", {"base_url": "http://storage.example.com:9000"}),
        ("az://container/t", {"account_name": "a", "endpoint": "http://storage.example.com:9000/a"}),
    ],
)
def test_plain_http_to_another_machine_is_refused_at_once(
    uri: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_USE_EMULATOR", raising=False)
    with pytest.raises(ConfigurationError, match="another machine needs allow_http=true"):
        open_store(uri, storage_options=options)
    open_store(uri, storage_options={**options, "allow_http": "true"})
    open_store(
        uri, storage_options={name: text.lower().replace("http:", "https:") for name, text in options.items()}
    )


def test_a_profile_without_credentials_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    (tmp_path / "config").write_text("[profile bare]\nregion = eu-central-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigurationError, match="profile 'bare' has no credentials"):
        open_store("s3://bucket/t", storage_options={"profile": "bare"})


def test_azure_s_emulator_may_be_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", "http://azurite.example.com:10000")
    assert open_store("az://container/t").uri == "az://container/t"


def test_an_azure_uri_without_an_account_says_where_to_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)
    with pytest.raises(ConfigurationError, match="Pass account_name, or set AZURE_STORAGE_ACCOUNT_NAME"):
        open_store("az://container/t")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    open_store("az://container/t")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("abfss://c@acct.dfs.core.windows.net/t", {}),
        ("abfss://c@acct.blob.core.windows.net/t", {}),
        (
            "abfss://c@acct.dfs.core.chinacloudapi.cn/t",
            {"endpoint": "https://acct.blob.core.chinacloudapi.cn"},
        ),
        ("abfss://c@onelake.dfs.fabric.microsoft.com/t", {"use_fabric_endpoint": True}),
    ],
)
def test_an_account_is_asked_in_its_own_cloud(
    uri: str, expected: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, object] = {}

    def client(container: str, *, config: dict[str, object], **options: object) -> AzureStore:
        found.update(config)
        return AzureStore(container, config=config, **options)

    for name in [name for name in os.environ if name.startswith(("AZURE_", "AZURITE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(azure.store, "AzureStore", client)
    open_store(uri)
    assert found == {"account_name": uri.partition("@")[2].partition(".")[0], **expected}
