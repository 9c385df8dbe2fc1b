"""The storage options in docs/stores.md, made from what the stores allow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from delta_core.storage.option_names import (
    AZURE_ALIASES,
    AZURE_OPTIONS,
    DYNAMODB_OPTIONS,
    GCS_ALIASES,
    GCS_OPTIONS,
    PROFILE_OPTIONS,
    S3_ALIASES,
    S3_OPTIONS,
    WEBHDFS_OPTIONS,
)
from delta_core.storage.store_options import CLIENT_OPTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The options of one store.

    Attributes:
        title: the section's title.
        text: an introduction to all options.
        names: the names that the store accepts.
        aliases: other names of the options.
        meanings: the meaning of each name.
        examples: a URI and the least options to open it, by a title.
    """

    title: str
    text: str
    names: frozenset[str]
    meanings: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)


_LONGEST_LINE: Final = 110
_KEYS: Final = {"AWS_ACCESS_KEY_ID": "...", "AWS_SECRET_ACCESS_KEY": "..."}

SECTIONS: Final = (
    Section(
        title="Amazon S3, MinIO and other compatible servers",
        text="With or without the prefix `AWS_`.",
        names=S3_OPTIONS | PROFILE_OPTIONS,
        aliases=S3_ALIASES,
        meanings={
            "access_key_id": "key, with `secret_access_key`",
            "secret_access_key": "secret of the key",
            "session_token": "session token of temporary keys",
            "profile": "profile of the shared AWS configuration, read through boto3",
            "region": "region, by default `us-east-1`",
            "endpoint": "address of the server, when it is not Amazon's",
            "virtual_hosted_style_request": "flag: the bucket is part of the host name",
            "skip_signature": "flag: public data, no credentials",
            "unsigned_payload": "flag: do not sign the request body",
            "checksum_algorithm": "checksum of written objects: `sha256`",
            "server_side_encryption": "`AES256`, `aws:kms`, `aws:kms:dsse` or `sse-c`",
            "sse_kms_key_id": "key of `aws:kms`",
            "sse_bucket_key_enabled": "flag: use the bucket key for `aws:kms`",
            "sse_customer_key_base64": "key of `sse-c`",
            "request_payer": "flag: the requester pays",
            "s3_express": "flag: the bucket is a directory bucket",
            "disable_tagging": "flag: objects get no tags",
            "role_arn": "role to assume with a web identity",
            "role_session_name": "session name of the assumed role",
            "web_identity_token_file": "file with the web identity",
            "container_credentials_relative_uri": "relative URI of a container's credentials",
            "container_credentials_full_uri": "full URI of a container's credentials",
            "container_authorization_token_file": "file with the authorization token for that URI",
            "imdsv1_fallback": "flag: fall back to version 1 of the instance metadata service",
        },
        examples={
            "S3, keys": ("s3://bucket/table", {**_KEYS, "AWS_REGION": "eu-central-1"}),
            "S3, a profile": ("s3://bucket/table", {"AWS_PROFILE": "default", "AWS_REGION": "eu-central-1"}),
            "MinIO": (
                "s3://bucket/table",
                {**_KEYS, "AWS_ENDPOINT_URL": "http://minio:9000", "AWS_ALLOW_HTTP": "true"},
            ),
        },
    ),
    Section(
        title="DynamoDB, in addition to the options of S3",
        text="With or without the prefix `AWS_`. With the prefix, all except the last can also be "
        "environment "
        "variables.",
        names=DYNAMODB_OPTIONS,
        meanings={
            "s3_locking_provider": "`dynamodb` or `none`",
            "dynamo_table_name": "table, by default `delta_log`; the prefix of this option is `DELTA_`",
            "endpoint_url_dynamodb": "address of the server, when it is not Amazon's",
            "region_dynamodb": "region, when it is not that of S3",
            "access_key_id_dynamodb": "key, when it is not that of S3",
            "secret_access_key_dynamodb": "secret of the key",
            "session_token_dynamodb": "session token of temporary keys",
            "dynamodb_scheme": "`s3`, `s3a` or `s3n`: the scheme that other writers of the table use",
        },
        examples={
            "S3 with DynamoDB": (
                "s3://bucket/table",
                {
                    **_KEYS,
                    "AWS_REGION": "eu-central-1",
                    "AWS_S3_LOCKING_PROVIDER": "dynamodb",
                    "DELTA_DYNAMO_TABLE_NAME": "delta_log",
                },
            )
        },
    ),
    Section(
        title="Google Cloud Storage",
        text="With or without the prefix `GOOGLE_`.",
        names=GCS_OPTIONS,
        aliases=GCS_ALIASES,
        meanings={
            "service_account": "path of a service account's key file",
            "service_account_key": "content of such a file",
            "application_credentials": "path of a file with application default credentials",
            "bearer_token": "bearer token, sent unchanged",
            "base_url": "address of the server, when it is not Google's",
            "skip_signature": "flag: public data, no credentials; for reads only, writes need credentials",
        },
        examples={"Google": ("gs://bucket/table", {"GOOGLE_SERVICE_ACCOUNT": "/secrets/key.json"})},
    ),
    Section(
        title="Azure Blob Storage and Data Lake Storage",
        text="With or without the prefix `AZURE_STORAGE_` or `AZURE_`.",
        names=AZURE_OPTIONS,
        aliases=AZURE_ALIASES,
        meanings={
            "account_name": "account; an `abfss:` URI already contains it",
            "account_key": "key of the account",
            "sas_key": "shared access signature, instead of a key",
            "token": "bearer token, sent unchanged",
            "tenant_id": "tenant of `client_id`",
            "client_id": "client id of an application or a managed identity",
            "client_secret": "secret of the application",
            "authority_host": "host that issues tokens, for sovereign clouds",
            "federated_token_file": "file with a workload identity token",
            "msi_endpoint": "endpoint that issues tokens of a managed identity",
            "msi_resource_id": "resource id of the managed identity",
            "object_id": "object id of the managed identity",
            "use_azure_cli": "flag: use tokens of the `az` program",
            "endpoint": "address of the server, when it is not Azure's",
            "use_fabric_endpoint": "flag: use OneLake's address",
            "skip_signature": "flag: public data, no credentials",
            "disable_tagging": "flag: objects get no tags",
        },
        examples={
            "Azure, a key": (
                "az://container/table",
                {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5"},
            ),
            "Azure, an application": (
                "abfss://container@account.dfs.core.windows.net/table",
                {"AZURE_TENANT_ID": "...", "AZURE_CLIENT_ID": "...", "AZURE_CLIENT_SECRET": "..."},
            ),
        },
    ),
    Section(
        title="HTTP client of S3, Google and Azure",
        text="Durations are written as `30s` or `2m`.",
        names=CLIENT_OPTIONS,
        meanings={
            "allow_http": "flag: allow requests to another machine without TLS",
            "timeout": "timeout of a request, by default `60s`",
            "connect_timeout": "timeout of connecting, by default `10s`",
            "proxy_url": "URL of a proxy",
            "root_certificate": "an additional trusted certificate in PEM",
            "user_agent": "value of the User-Agent header",
        },
    ),
    Section(
        title="HDFS",
        text="Exactly as written here. No other options exist.",
        names=frozenset(WEBHDFS_OPTIONS),
        meanings={
            "webhdfs_endpoint": "HTTP addresses of the NameNodes, separated by commas",
            "user": "user of simple authentication",
            "delegation_token": "delegation token, instead of a Kerberos login",
            "timeout_seconds": "timeout of each step of a request, by default 60",
        },
        examples={"HDFS": ("hdfs://namenode/table", {"user": "etl"})},
    ),
)


def option_tables() -> str:
    """Every store's options as Markdown, with examples of the least options.

    Raises:
        KeyError: an accepted option has no meaning in `SECTIONS`.
    """
    return "\n".join(line for section in SECTIONS for line in _section(section))


def _section(section: Section) -> Iterator[str]:
    yield from (f"### {section.title}", "", section.text, "")
    yield from ("| option | also | what |", "| --- | --- | --- |")
    # In the order of `meanings`. An option without a meaning raises KeyError.
    order = {name: number for number, name in enumerate(section.meanings)}
    for name in sorted(section.names, key=lambda name: order[name]):
        also = sorted(alias for alias, meant in section.aliases.items() if meant == name)
        yield f"| `{name}` | {', '.join(f'`{alias}`' for alias in also) or '-'} | {section.meanings[name]} |"
    yield ""
    if section.examples:
        yield "```python"
        for what, (uri, options) in section.examples.items():
            yield f"# {what}"
            pairs = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in options.items()]
            line = f'DeltaTable("{uri}", storage_options={{{", ".join(pairs)}}})'
            if len(line) <= _LONGEST_LINE:
                yield line
            else:
                yield from (f'DeltaTable(\n    "{uri}",', "    storage_options={")
                yield from (f"        {pair}," for pair in pairs)
                yield from ("    },", ")")
        yield from ("```", "")
