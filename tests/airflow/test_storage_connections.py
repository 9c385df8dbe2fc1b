"""Connections of other providers as storage options: what becomes of each field, and what is refused."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import certifi
import pytest
from airflow.sdk.log import mask_secret

import delta_airflow.hooks.deltaward as hook_module
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.storage_connections import STORAGE_CONNECTION_TYPES
from delta_airflow.provider_info import get_provider_info
from delta_airflow.runners.driver import STORAGE_OPTIONS_VARIABLE, driver_environment
from delta_airflow.runners.spark_connect import SparkConnectCommand
from delta_airflow.runners.spark_submit import SparkSubmitCommand
from delta_core.errors import ConfigurationError
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.storage.open import open_store
from tests.support.airflow import connection_json

BUNDLE = "".join(
    f"{begin}{rest}{end}\n"
    for begin, end in [("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")]
    for rest in re.findall(f"{begin}([^-]+){end}", Path(certifi.where()).read_text(encoding="utf-8"))
)
KEYS = {"login": "AKIA-of-nobody", "password": "secret-of-nobody"}
KEY_OPTIONS = {"aws_access_key_id": KEYS["login"], "aws_secret_access_key": KEYS["password"]}
APPLICATION = {"login": "app", "password": "app-secret"}
ACCOUNT_KEY = "a2V5LW9mLW5vYm9keQ=="
SERVICE_KEY = {"type": "service_account", "client_email": "", "private_key": "", "private_key_id": ""}
ANONYMOUS = {**SERVICE_KEY, "disable_oauth": True}


def settings(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | str, **extra: Any) -> Any:
    text = connection if isinstance(connection, str) else json.dumps(connection)
    monkeypatch.setenv("AIRFLOW_CONN_COMPANY", text)
    monkeypatch.setenv("AIRFLOW_CONN_T", connection_json(storage_conn_id="company", **extra))
    return DeltawardHook("t").settings


def aws(**more: Any) -> dict[str, Any]:
    extra = more.pop("extra", {})
    return {"conn_type": "aws", **KEYS, **more, "extra": extra}


def bare_aws(**extra: Any) -> dict[str, Any]:
    return {"conn_type": "aws", "extra": extra}


def google(**extra: Any) -> dict[str, Any]:
    return {"conn_type": "google_cloud_platform", "extra": extra}


def wasb(**more: Any) -> dict[str, Any]:
    extra = more.pop("extra", {})
    return {"conn_type": "wasb", **more, "extra": extra}


def adls(**more: Any) -> dict[str, Any]:
    return {**wasb(**more), "conn_type": "adls"}


def webhdfs(**more: Any) -> dict[str, Any]:
    extra = more.pop("extra", {})
    return {"conn_type": "webhdfs", "host": "nn", "port": 9870, **more, "extra": extra}


def web_identity(**more: Any) -> dict[str, Any]:
    return {
        "role_arn": "arn:aws:iam::1:role/r",
        "assume_role_method": "assume_role_with_web_identity",
        "assume_role_with_web_identity_federation": "file",
        "assume_role_with_web_identity_token_file": "/run/token",
        **more,
    }


ROLE_OPTIONS = {"aws_role_arn": "arn:aws:iam::1:role/r", "aws_web_identity_token_file": "/run/token"}
LOCALHOST = "http://127.0.0.1:9000"

AWS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "login and password": (aws(), KEY_OPTIONS),
    "keys in the extra": (
        bare_aws(aws_access_key_id="k", aws_secret_access_key="s"),
        {"aws_access_key_id": "k", "aws_secret_access_key": "s"},
    ),
    "login goes first": (aws(extra={"aws_access_key_id": "k", "aws_secret_access_key": "s"}), KEY_OPTIONS),
    "keys of old": (
        bare_aws(session_kwargs={"aws_access_key_id": "k", "aws_secret_access_key": "s"}),
        {"aws_access_key_id": "k", "aws_secret_access_key": "s"},
    ),
    "aws_session_token": (
        aws(extra={"aws_session_token": "tok"}),
        {**KEY_OPTIONS, "aws_session_token": "tok"},
    ),
    "region_name": (aws(extra={"region_name": "eu-west-1"}), {**KEY_OPTIONS, "aws_region": "eu-west-1"}),
    "region in config_kwargs": (
        aws(extra={"config_kwargs": {"region_name": "eu-west-1"}}),
        {**KEY_OPTIONS, "aws_region": "eu-west-1"},
    ),
    "endpoint_url": (
        aws(extra={"endpoint_url": "https://s3.example.com"}),
        {**KEY_OPTIONS, "aws_endpoint_url": "https://s3.example.com"},
    ),
    "endpoint_url without TLS": (
        aws(extra={"endpoint_url": "http://minio:9000", "verify": False}),
        {**KEY_OPTIONS, "aws_endpoint_url": "http://minio:9000", "aws_allow_http": "true"},
    ),
    "endpoint of the service": (
        aws(
            extra={
                "endpoint_url": "https://all.example.com",
                "service_config": {
                    "s3": {"endpoint_url": "https://s3.example.com", "bucket_name": "b"},
                    "dynamodb": {"endpoint_url": "https://ddb.example.com"},
                    "sts": {"endpoint_url": "https://sts.example.com"},
                },
            }
        ),
        {
            **KEY_OPTIONS,
            "aws_endpoint_url": "https://s3.example.com",
            "endpoint_url_dynamodb": "https://ddb.example.com",
        },
    ),
    "profile_name": (bare_aws(profile_name="default"), {"aws_profile": "default"}),
    "profile of old": (bare_aws(session_kwargs={"profile_name": "default"}), {"aws_profile": "default"}),
    "keys go before a profile": (aws(extra={"profile_name": "default"}), KEY_OPTIONS),
    "verify": (aws(extra={"verify": True}), KEY_OPTIONS),
    "verify with certificates": (
        aws(extra={"verify": certifi.where()}),
        {**KEY_OPTIONS, "root_certificate": BUNDLE},
    ),
    "role by a web identity": (bare_aws(**web_identity()), ROLE_OPTIONS),
    "a role goes before keys": (aws(extra=web_identity()), ROLE_OPTIONS),
    "its session": (
        bare_aws(**web_identity(assume_role_kwargs={"RoleSessionName": "airflow", "DurationSeconds": 900})),
        {**ROLE_OPTIONS, "aws_role_session_name": "airflow"},
    ),
    "unsigned": (
        aws(extra={"config_kwargs": {"signature_version": "unsigned"}}),
        {"aws_skip_signature": "true"},
    ),
    "proxies": (
        aws(extra={"config_kwargs": {"proxies": {"https": "http://proxy:3128", "http": "http://other:1"}}}),
        {**KEY_OPTIONS, "proxy_url": "http://proxy:3128"},
    ),
    "path addresses": (aws(extra={"config_kwargs": {"s3": {"addressing_style": "path"}}}), KEY_OPTIONS),
    "nothing": (bare_aws(), {}),
    "harmless": (
        aws(
            extra={
                "config_kwargs": {"retries": {"mode": "standard"}, "signature_version": "s3v4"},
                "assume_role_method": "assume_role",
                "service_config": {"emr": {"endpoint_url": "https://emr.example.com"}},
                "job_flow": {"Name": "x"},
                "verify": "true",
                "use_a_url": "",
            },
            schema="bucket",
        ),
        KEY_OPTIONS,
    ),
    "objects as texts": (
        aws(extra={"service_config": '{"s3": {"endpoint_url": "https://s3.example.com"}}'}),
        {**KEY_OPTIONS, "aws_endpoint_url": "https://s3.example.com"},
    ),
}

GOOGLE: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "keyfile_dict": (
        google(keyfile_dict=ANONYMOUS, project="p", scope="a,b", num_retries=5),
        {"google_service_account_key": json.dumps(ANONYMOUS)},
    ),
    "keyfile_dict as a text": (
        google(keyfile_dict=json.dumps(ANONYMOUS)),
        {"google_service_account_key": json.dumps(ANONYMOUS)},
    ),
    "name of old": (
        google(extra__google_cloud_platform__keyfile_dict=json.dumps(ANONYMOUS)),
        {"google_service_account_key": json.dumps(ANONYMOUS)},
    ),
    "is_anonymous": (google(is_anonymous=True), {"google_skip_signature": "true"}),
    "empty fields of the form": (
        google(keyfile_dict=json.dumps(ANONYMOUS), key_path="", is_anonymous=False, impersonation_chain=""),
        {"google_service_account_key": json.dumps(ANONYMOUS)},
    ),
    "a key as credential configuration": (
        google(credential_config_file=ANONYMOUS),
        {"google_service_account_key": json.dumps(ANONYMOUS)},
    ),
    "nothing": (google(project="p", quota_project_id="q"), {}),
}

ACCOUNT = {"azure_storage_account_name": "acct", "azure_storage_account_key": ACCOUNT_KEY}
TENANT = {"azure_tenant_id": "tenant", "azure_client_id": "app", "azure_client_secret": "app-secret"}
SAS = {"azure_storage_account_name": "acct", "azure_storage_sas_key": "sv=1&sig=x"}
AT_HOME = "http://127.0.0.1:10000/acct"

AZURE: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "login and password": (wasb(login="acct", password=ACCOUNT_KEY), ACCOUNT),
    "account_key": (wasb(login="acct", extra={"account_key": ACCOUNT_KEY}), ACCOUNT),
    "shared_access_key goes first": (
        wasb(login="acct", password="b3RoZXI=", extra={"shared_access_key": ACCOUNT_KEY}),
        ACCOUNT,
    ),
    "sas_token": (wasb(login="acct", password="b3RoZXI=", extra={"sas_token": "sv=1&sig=x"}), SAS),
    "sas_token as an address": (
        wasb(extra={"sas_token": "https://acct.blob.core.windows.net/?sv=1&sig=x"}),
        SAS,
    ),
    "name of old": (wasb(login="acct", extra={"extra__wasb__sas_token": "sv=1&sig=x"}), SAS),
    "host": (wasb(host="https://acct.blob.core.windows.net/", password=ACCOUNT_KEY), ACCOUNT),
    "host without a scheme": (wasb(host="acct.blob.core.windows.net", password=ACCOUNT_KEY), ACCOUNT),
    "host in another cloud": (
        wasb(host="https://acct.blob.core.chinacloudapi.cn", password=ACCOUNT_KEY),
        {**ACCOUNT, "azure_storage_endpoint": "https://acct.blob.core.chinacloudapi.cn"},
    ),
    "a server of one's own": (
        wasb(host=AT_HOME, login="acct", password=ACCOUNT_KEY),
        {**ACCOUNT, "azure_storage_endpoint": AT_HOME, "allow_http": "true"},
    ),
    "host that is no address": (wasb(host="other", login="acct", password=ACCOUNT_KEY), ACCOUNT),
    "tenant_id": (
        wasb(host="https://acct.blob.core.windows.net", **APPLICATION, extra={"tenant_id": "tenant"}),
        {**TENANT, "azure_storage_account_name": "acct"},
    ),
    "authority": (
        wasb(
            host="acct",
            **APPLICATION,
            extra={"tenant_id": "tenant", "client_secret_auth_config": {"authority": "login.example.com"}},
        ),
        {
            **TENANT,
            "azure_storage_account_name": "acct",
            "azure_authority_host": "https://login.example.com",
        },
    ),
    "managed_identity_client_id": (
        wasb(login="acct", extra={"managed_identity_client_id": "m", "workload_identity_tenant_id": "w"}),
        {"azure_storage_account_name": "acct", "azure_client_id": "m", "azure_tenant_id": "w"},
    ),
    "connection_string": (
        wasb(
            login="other",
            password="b3RoZXI=",
            extra={"connection_string": f"AccountName=acct;AccountKey={ACCOUNT_KEY}"},
        ),
        ACCOUNT,
    ),
    "connection_string elsewhere": (
        wasb(
            extra={
                "connection_string": "DefaultEndpointsProtocol=http;AccountName=acct;"
                f"AccountKey={ACCOUNT_KEY};BlobEndpoint={AT_HOME};"
            }
        ),
        {**ACCOUNT, "azure_storage_endpoint": AT_HOME, "allow_http": "true"},
    ),
    "connection_string with a suffix": (
        wasb(
            extra={
                "connection_string": f"AccountName=acct;AccountKey={ACCOUNT_KEY};"
                "EndpointSuffix=core.usgovcloudapi.net"
            }
        ),
        {**ACCOUNT, "azure_storage_endpoint": "https://acct.blob.core.usgovcloudapi.net"},
    ),
    "connection_string with a signature": (
        wasb(
            extra={
                "connection_string": "BlobEndpoint=https://acct.blob.core.windows.net;"
                "SharedAccessSignature=sv=1&sig=x"
            }
        ),
        SAS,
    ),
    "proxies": (
        wasb(login="acct", password=ACCOUNT_KEY, extra={"proxies": {"https": "http://proxy:3128"}}),
        {**ACCOUNT, "proxy_url": "http://proxy:3128"},
    ),
    "harmless": (wasb(login="acct", password=ACCOUNT_KEY, extra={"max_single_put_size": 1}), ACCOUNT),
    "adls: a key": (adls(host="acct", password=ACCOUNT_KEY), ACCOUNT),
    "adls: a signature": (adls(host="acct", password="sv=1&sig=x"), SAS),
    "adls: an application": (
        adls(host="acct", **APPLICATION, extra={"tenant_id": "tenant"}),
        {**TENANT, "azure_storage_account_name": "acct"},
    ),
    "adls: account_url": (
        adls(password=ACCOUNT_KEY, extra={"account_url": "https://acct.dfs.core.windows.net"}),
        ACCOUNT,
    ),
    "adls: account_url in another cloud": (
        adls(password=ACCOUNT_KEY, extra={"account_url": "https://acct.dfs.core.chinacloudapi.cn"}),
        {**ACCOUNT, "azure_storage_endpoint": "https://acct.blob.core.chinacloudapi.cn"},
    ),
    "data lake of old": (
        {
            "conn_type": "azure_data_lake",
            **APPLICATION,
            "extra": {"tenant": "tenant", "account_name": "acct"},
        },
        {**TENANT, "azure_storage_account_name": "acct"},
    ),
}

HDFS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "host, port, login": (webhdfs(login="etl"), {"webhdfs_endpoint": "http://nn:9870", "user": "etl"}),
    "several hosts": (
        webhdfs(host="nn1, nn2"),
        {"webhdfs_endpoint": "http://nn1:9870,http://nn2:9870"},
    ),
    "hosts with ports": (
        webhdfs(host="nn1:1,nn2", port=2),
        {"webhdfs_endpoint": "http://nn1:1,http://nn2:2"},
    ),
    "use_ssl": (
        webhdfs(port=9871, extra={"use_ssl": True, "verify": True}),
        {"webhdfs_endpoint": "https://nn:9871"},
    ),
    "use_ssl as a text": (webhdfs(extra={"use_ssl": "True"}), {"webhdfs_endpoint": "https://nn:9870"}),
    "verify without TLS": (webhdfs(extra={"verify": False}), {"webhdfs_endpoint": "http://nn:9870"}),
    "schema": (
        webhdfs(schema="/gateway/default/"),
        {"webhdfs_endpoint": "http://nn:9870/gateway/default"},
    ),
    "proxy_user": (
        webhdfs(login="airflow", extra={"proxy_user": "etl"}),
        {"webhdfs_endpoint": "http://nn:9870", "user": "etl"},
    ),
    "delegation_token": (
        webhdfs(login="etl", extra={"delegation_token": "tok"}),
        {"webhdfs_endpoint": "http://nn:9870", "delegation_token": "tok"},
    ),
    "hdfs": ({**webhdfs(), "conn_type": "hdfs"}, {"webhdfs_endpoint": "http://nn:9870"}),
    "hdfs with the port of its own protocol": (
        {**webhdfs(port=8020), "conn_type": "hdfs"},
        {"webhdfs_endpoint": "http://nn"},
    ),
    "no host": ({"conn_type": "hdfs", "login": "etl"}, {"user": "etl"}),
}


def _cases(table: dict[str, tuple[dict[str, Any], dict[str, str]]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("connection", "expected"), table.values(), ids=table.keys())


@_cases(AWS)
def test_aws(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], expected: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    options = settings(monkeypatch, connection).storage_options
    assert options == expected
    assert open_store("s3://bucket/t", storage_options=options).uri == "s3://bucket/t"


@_cases(GOOGLE)
def test_google(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], expected: dict[str, str]
) -> None:
    options = settings(monkeypatch, connection).storage_options
    assert options == expected
    assert open_store("gs://bucket/t", storage_options=options).uri == "gs://bucket/t"


def test_a_google_key_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text(json.dumps(ANONYMOUS))
    options = settings(monkeypatch, google(key_path=str(path))).storage_options
    assert options == {"google_service_account": str(path)}
    assert open_store("gs://bucket/t", storage_options=options).uri == "gs://bucket/t"
    options = settings(monkeypatch, google(credential_config_file=str(path))).storage_options
    assert options == {"google_application_credentials": str(path)}


def test_a_google_key_with_escaped_line_ends_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    key = {**SERVICE_KEY, "private_key": "-----BEGIN-----\\nx\\n"}
    options = settings(monkeypatch, google(keyfile_dict=key)).storage_options
    assert json.loads(options["google_service_account_key"])["private_key"] == "-----BEGIN-----\nx\n"


@_cases(AZURE)
def test_azure(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], expected: dict[str, str]) -> None:
    options = settings(monkeypatch, connection).storage_options
    assert options == expected
    assert open_store("az://container/t", storage_options=options).uri == "az://container/t"
    whole = "abfss://container@acct.dfs.core.windows.net/t"
    assert open_store(whole, storage_options=options).uri == whole


@_cases(HDFS)
def test_hdfs(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], expected: dict[str, str]) -> None:
    options = settings(monkeypatch, connection).storage_options
    assert options == expected
    assert open_store("hdfs://nn/t", storage_options=options).uri == "hdfs://nn/t"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "aws: a role by keys": (aws(extra={"role_arn": "arn:aws:iam::1:role/r"}), "role_arn"),
    "aws: a role by SAML": (
        aws(extra=web_identity(assume_role_method="assume_role_with_saml")),
        "role_arn",
    ),
    "aws: a role by Google": (
        aws(extra=web_identity(assume_role_with_web_identity_federation="google")),
        "role_arn",
    ),
    "aws: a narrowed role": (aws(extra=web_identity(assume_role_kwargs={"Policy": "{}"})), "Policy"),
    "aws: a role from another service": (
        aws(extra=web_identity(service_config={"sts": {"endpoint_url": "https://sts.example.com"}})),
        "service_config.sts.endpoint_url",
    ),
    "aws: a key alone": ({"conn_type": "aws", "login": "AKIA-of-nobody"}, "login"),
    "aws: a secret alone": ({"conn_type": "aws", "password": "secret-of-nobody"}, "password"),
    "aws: host": (aws(host="minio:9000"), "host"),
    "aws: profile": (bare_aws(profile="p"), "profile"),
    "aws: verify off": (aws(extra={"verify": False}), "verify"),
    "aws: verify off as a text": (aws(extra={"verify": "false"}), "verify"),
    "aws: certificates that are not there": (aws(extra={"verify": "/no/such/file.pem"}), "verify"),
    "aws: accelerated": (
        aws(extra={"config_kwargs": {"s3": {"use_accelerate_endpoint": True}}}),
        "use_accelerate_endpoint",
    ),
    "aws: FIPS": (aws(extra={"config_kwargs": {"use_fips_endpoint": True}}), "use_fips_endpoint"),
    "aws: virtual addresses elsewhere": (
        aws(
            extra={
                "endpoint_url": "https://s3.example.com",
                "config_kwargs": {"s3": {"addressing_style": "virtual"}},
            }
        ),
        "addressing_style",
    ),
    "aws: a certificate": (aws(extra={"config_kwargs": {"client_cert": "/c"}}), "client_cert"),
    "aws: unknown": (aws(extra={"s3_endpoint": "x"}), "s3_endpoint"),
    "aws: an account": (aws(extra={"aws_account_id": "1"}), "aws_account_id"),
    "aws: no object": (aws(extra={"config_kwargs": "[]"}), "config_kwargs"),
    "google: several ways": (google(keyfile_dict=ANONYMOUS, key_path="/k.json"), "keyfile_dict, key_path"),
    "google: impersonation": (
        google(keyfile_dict=ANONYMOUS, impersonation_chain="a@b"),
        "impersonation_chain",
    ),
    "google: Secret Manager": (google(key_secret_name="s"), "key_secret_name"),
    "google: another issuer": (google(idp_issuer_url="https://i", client_id="x"), "idp_issuer_url"),
    "google: P12": (google(key_path="/k.p12"), "key_path"),
    "google: a foreign account": (
        google(credential_config_file='{"type": "external_account"}'),
        "credential_config_file",
    ),
    "google: no JSON": (google(keyfile_dict="secret-of-nobody"), "keyfile_dict"),
    "google: unknown": (google(api_endpoint="https://x"), "api_endpoint"),
    "wasb: a tenant alone": (wasb(login="acct", extra={"tenant_id": "t"}), "tenant_id"),
    "wasb: the emulator": (
        wasb(extra={"connection_string": "UseDevelopmentStorage=true"}),
        "connection_string",
    ),
    "wasb: no account": (
        wasb(extra={"connection_string": "AccountKey=secret-of-nobody"}),
        "connection_string",
    ),
    "wasb: unknown": (wasb(login="acct", extra={"secondary_hostname": "x"}), "secondary_hostname"),
    "webhdfs: password": (webhdfs(**KEYS), "password"),
    "webhdfs: cookies": (webhdfs(extra={"cookies": {"a": "b"}}), "cookies"),
    "webhdfs: headers": (webhdfs(extra={"headers": {"a": "b"}}), "headers"),
    "webhdfs: a certificate": (webhdfs(extra={"use_ssl": True, "cert": "/c", "key": "/k"}), "cert"),
    "webhdfs: verify off": (webhdfs(extra={"use_ssl": True, "verify": False}), "verify"),
    "webhdfs: certificates": (webhdfs(extra={"use_ssl": True, "verify": "/ca.pem"}), "verify"),
    "webhdfs: unknown": (webhdfs(extra={"kerberos_principal": "p"}), "kerberos_principal"),
    "webhdfs: no flag": (webhdfs(extra={"use_ssl": "perhaps"}), "use_ssl"),
    "another type": ({"conn_type": "http", **KEYS}, "'http'"),
    "a type that Airflow did not know": ({"conn_type": "generic", **KEYS}, "apache-airflow-providers-amazon"),
    "itself": ({"conn_type": "deltaward", "extra": {}}, "'deltaward'"),
    "an extra that is no JSON": ({"conn_type": "aws", **KEYS, "extra": "region_name=x"}, "extra"),
    "an extra that is a list": ({"conn_type": "aws", **KEYS, "extra": "[1]"}, "extra"),
}


@pytest.mark.parametrize(("connection", "name"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_followed_is_named(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], name: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings(monkeypatch, connection)
    text = str(caught.value)
    assert name in text
    assert "company" in text
    assert caught.value.fix
    assert "of-nobody" not in text


def test_kerberos_asks_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__SECURITY", "kerberos")
    with pytest.raises(ConfigurationError, match="kerberos"):
        settings(monkeypatch, webhdfs(login="etl"))
    own = settings(monkeypatch, webhdfs(login="etl"), storage_options={"delegation_token": "t"})
    assert own.storage_options == {"webhdfs_endpoint": "http://nn:9870", "delegation_token": "t"}


@pytest.mark.parametrize("name", ["AWS_REGION", "aws_region", "region", "default_region"])
def test_an_own_option_wins_in_every_spelling(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found = settings(monkeypatch, aws(extra={"region_name": "eu-west-1"}), storage_options={name: "here"})
    assert found.storage_options == {**KEY_OPTIONS, name: "here"}


@pytest.mark.parametrize(
    ("connection", "own", "left"),
    [
        (aws(extra={"aws_session_token": "t"}), {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}, {}),
        (aws(extra={"region_name": "r"}), {"profile": "p"}, {"aws_region": "r"}),
        (
            wasb(login="acct", password=ACCOUNT_KEY),
            {"sas_token": "s"},
            {"azure_storage_account_name": "acct"},
        ),
        (google(keyfile_dict=ANONYMOUS), {"bearer_token": "t"}, {}),
        (webhdfs(login="etl"), {"user": "me"}, {"webhdfs_endpoint": "http://nn:9870"}),
        # What is not followed does not matter where the connection says it itself.
        (aws(extra={"role_arn": "r"}), {"aws_profile": "p"}, {}),
        (aws(host="minio"), {"endpoint": "https://minio"}, KEY_OPTIONS),
        (webhdfs(**KEYS), {"delegation_token": "t"}, {"webhdfs_endpoint": "http://nn:9870"}),
    ],
)
def test_own_credentials_replace_all_of_the_others(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], own: dict[str, str], left: dict[str, str]
) -> None:
    found = settings(monkeypatch, connection, storage_options=own)
    assert found.storage_options == {**left, **own}


def test_the_connection_is_read_anew_each_time_and_on_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    first = settings(monkeypatch, aws())
    monkeypatch.setenv("AIRFLOW_CONN_COMPANY", json.dumps(aws(password="rotated-of-nobody")))
    assert first.storage_options == KEY_OPTIONS
    rotated = {**KEY_OPTIONS, "aws_secret_access_key": "rotated-of-nobody"}
    assert DeltawardHook("t").settings.storage_options == rotated
    assert asyncio.run(DeltawardHook.aload("t")).settings == DeltawardHook("t").settings


def test_a_connection_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_T", connection_json(storage_conn_id="nowhere"))
    for read in (lambda: DeltawardHook("t").settings, lambda: asyncio.run(DeltawardHook.aload("t"))):
        with pytest.raises(
            ConfigurationError, match="connection nowhere, to which storage_conn_id of t refers"
        ):
            read()
    good, message = DeltawardHook("t").test_connection()
    assert not good
    assert "nowhere" in message


def test_a_uri_of_airflow_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "aws://AKIA-of-nobody:secret-of-nobody@/?region_name=eu-west-1"
    assert settings(monkeypatch, uri).storage_options == {**KEY_OPTIONS, "aws_region": "eu-west-1"}
    key = json.dumps(ANONYMOUS).replace('"', "%22").replace(" ", "%20")
    google_uri = f"google-cloud-platform:///?keyfile_dict={key}&is_anonymous=False"
    assert "google_service_account_key" in settings(monkeypatch, google_uri).storage_options
    hdfs = settings(monkeypatch, "webhdfs://etl@nn:9871/?use_ssl=True").storage_options
    assert hdfs == {"webhdfs_endpoint": "https://nn:9871", "user": "etl"}


def test_secrets_are_masked_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []

    def remember(secret: str, name: str | None = None) -> None:
        masked.append(secret)
        mask_secret(secret, name)

    monkeypatch.setattr(hook_module, "mask_secret", remember)
    found = settings(monkeypatch, aws(extra={"aws_session_token": "token-of-nobody"}))
    assert {KEYS["login"], KEYS["password"], "token-of-nobody"} <= set(masked)
    assert "of-nobody" not in repr(found)
    key = {**SERVICE_KEY, "private_key": "private-of-nobody"}
    assert "of-nobody" not in repr(settings(monkeypatch, google(keyfile_dict=key)))
    assert "private-of-nobody" in masked
    string = "AccountName=acct;AccountKey=a2V5-of-nobody"
    assert "of-nobody" not in repr(settings(monkeypatch, wasb(extra={"connection_string": string})))
    assert "a2V5-of-nobody" in masked


def test_a_table_gets_the_options_of_its_own_store_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    settings(monkeypatch, aws())
    hook = DeltawardHook("t")
    assert hook.storage_options("/data/t") == hook.storage_options("file:///data/t") == {}
    assert hook.table_uri("/data/t") == "file:///data/t"
    assert hook.storage_options(hook.table_uri("s3a://bucket/t")) == KEY_OPTIONS
    assert hook.storage_options("mine://place/t") == KEY_OPTIONS
    for uri in ("gs://bucket/t", "az://container/t", "hdfs://nn/t"):
        with pytest.raises(ConfigurationError, match="company is of the type aws"):
            hook.table_uri(uri)


def test_a_driver_gets_the_options_by_its_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings(monkeypatch, aws(), connect_url="sc://127.0.0.1:15002")
    found = DeltawardHook("t").settings
    spec = JobSpec(kind="load", table=TableRef(uri="s3://bucket/t"), job_id="j")
    for builder in (SparkSubmitCommand(found), SparkConnectCommand(found)):
        command = builder.build(spec_path=tmp_path / "s", result_path=tmp_path / "r", spec=spec)
        assert json.loads(command.environment[STORAGE_OPTIONS_VARIABLE]) == KEY_OPTIONS
        assert "of-nobody" not in " ".join(command.arguments)


def test_a_file_of_certificates_may_hold_more_than_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = BUNDLE.partition("-----END")[0] + "-----END CERTIFICATE-----\n"
    path = tmp_path / "ca.pem"
    path.write_bytes("# Büro\r\n".encode() + one.replace("\n", "\r\n").encode() + b"\xff\n")
    options = settings(monkeypatch, aws(extra={"verify": str(path)})).storage_options
    assert options["root_certificate"] == one
    path.write_text("no certificate")
    with pytest.raises(ConfigurationError, match="verify"):
        settings(monkeypatch, aws(extra={"verify": str(path)}))


def test_options_that_no_driver_can_be_given_are_refused_before_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = settings(monkeypatch, aws(extra={"verify": certifi.where()}))
    with pytest.raises(ConfigurationError, match="root_certificate"):
        driver_environment(found)


def test_a_local_table_needs_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_T", connection_json(storage_options={"aws_region": "x"}))
    assert DeltawardHook("t").storage_options("/data/t") == {}
    assert DeltawardHook("t").storage_options("s3://bucket/t") == {"aws_region": "x"}


def test_the_form_names_every_type() -> None:
    (connection,) = get_provider_info()["connection-types"]
    described = connection["conn-fields"]["storage_conn_id"]["description"]
    assert all(name in described for name in STORAGE_CONNECTION_TYPES)
