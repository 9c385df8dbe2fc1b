"""docs/stores.md lists the options that the stores allow, and its examples open a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import certifi
import pytest

from delta_core.storage.open import open_store
from scripts.docs.storage_options import SECTIONS, Section, option_tables

PAGE = Path(__file__).parents[3] / "docs" / "stores.md"
BEGIN = "<!-- options: from here on made by `UPDATE=1 pytest tests/unit/docs/test_storage_options.py` -->\n"
END = "<!-- options: to here -->\n"


def test_the_page_lists_what_the_stores_allow() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page = f"{before}{BEGIN}\n{option_tables()}\n{END}{after}"
    if os.environ.get("UPDATE"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "UPDATE=1 writes the tables again"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_every_option_has_a_meaning_and_no_meaning_is_left_over(section: Section) -> None:
    assert set(section.meanings) == section.names


@pytest.mark.parametrize(
    ("uri", "options"),
    [example for section in SECTIONS for example in section.examples.values()],
    ids=[what for section in SECTIONS for what in section.examples],
)
def test_every_example_opens_a_store(
    uri: str, options: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    if "GOOGLE_SERVICE_ACCOUNT" in options:
        key = tmp_path / "key.json"
        key.write_text('{"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": true}')
        options = {**options, "GOOGLE_SERVICE_ACCOUNT": str(key)}
    assert open_store(uri, storage_options=options).uri


_KEY = '{"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": true}'
_USER = '{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "t"}'
_VALUES = {
    "endpoint": "https://storage.example.com",
    "base_url": "https://storage.example.com",
    "endpoint_url_dynamodb": "https://dynamo.example.com",
    "msi_endpoint": "https://identity.example.com/token",
    "authority_host": "https://login.example.com",
    "proxy_url": "http://proxy.example.com:3128",
    "webhdfs_endpoint": "http://nn:9870",
    "container_credentials_full_uri": "http://127.0.0.1/credentials",
    "container_credentials_relative_uri": "/credentials",
    "checksum_algorithm": "sha256",
    "account_key": "a2V5",
    "sas_key": "sv=2021-01-01&sig=abc",
    "service_account_key": _KEY,
    "server_side_encryption": "AES256",
    "sse_customer_key_base64": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    "bearer_token": "token",
    "s3_locking_provider": "dynamodb",
    "dynamodb_scheme": "s3",
    "profile": "default",
    "timeout": "30s",
    "connect_timeout": "5s",
    "timeout_seconds": "30",
    "object_id": "6f1bd2a4-0000-0000-0000-000000000000",
    "client_id": "6f1bd2a4-0000-0000-0000-000000000001",
}
_BESIDE = {
    "sse_kms_key_id": {"server_side_encryption": "aws:kms"},
    "sse_bucket_key_enabled": {"server_side_encryption": "aws:kms"},
    "sse_customer_key_base64": {"server_side_encryption": "sse-c"},
    "access_key_id": {"secret_access_key": "s"},
    "secret_access_key": {"access_key_id": "k"},
    "session_token": {"access_key_id": "k", "secret_access_key": "s"},
    "access_key_id_dynamodb": {"secret_access_key_dynamodb": "s"},
    "secret_access_key_dynamodb": {"access_key_id_dynamodb": "k"},
}
_URIS = {
    "Amazon S3, MinIO and other compatible servers": "s3://bucket/t",
    "DynamoDB, in addition to the options of S3": "s3://bucket/t",
    "Google Cloud Storage": "gs://bucket/t",
    "Azure Blob Storage and Data Lake Storage": "abfss://c@account.dfs.core.windows.net/t",
    "HTTP client of S3, Google and Azure": "s3://bucket/t",
    "HDFS": "hdfs://nn/t",
}


@pytest.mark.parametrize(
    ("title", "name"), [(section.title, name) for section in SECTIONS for name in sorted(section.names)]
)
def test_a_store_opens_with_each_option(
    title: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    (tmp_path / "service_account.json").write_text(_KEY)
    (tmp_path / "application_credentials.json").write_text(_USER)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    flags = {other for section in SECTIONS for other, what in section.meanings.items() if what[:4] == "flag"}
    value = "true" if name in flags else _VALUES.get(name, "value")
    if name in ("service_account", "application_credentials"):
        value = str(tmp_path / f"{name}.json")
    if name == "root_certificate":
        value = Path(certifi.where()).read_text(encoding="utf-8")
    uri = "s3://bucket--use1-az4--x-s3/t" if name == "s3_express" else _URIS[title]
    assert open_store(uri, storage_options={name: value, **_BESIDE.get(name, {})}).uri == uri
