"""The names of the options of each remote store, without importing the clients.

Code that only checks names, such as an Airflow connection, therefore loads no client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delta_core.storage.store_options import CLIENT_OPTIONS, plain_name

S3_OPTIONS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "region", "endpoint", "skip_signature"}
    | {"unsigned_payload", "virtual_hosted_style_request", "server_side_encryption", "sse_kms_key_id"}
    | {"sse_bucket_key_enabled", "sse_customer_key_base64", "checksum_algorithm", "request_payer"}
    | {"role_arn", "role_session_name", "web_identity_token_file", "s3_express"}
    | {"container_credentials_relative_uri", "container_credentials_full_uri", "disable_tagging"}
    | {"container_authorization_token_file", "imdsv1_fallback"}
)
"""The options of the S3 client, without those that select how an object is created only if absent."""

S3_ALIASES = {"default_region": "region", "endpoint_url": "endpoint", "endpoint_url_s3": "endpoint"} | {
    "token": "session_token",
    "s3_allow_http": "allow_http",
}
"""Alternative names of S3 options."""

S3_PREFIXES = ("aws_", "s3_", "delta_")

PROFILE_OPTIONS = frozenset({"profile"})
"""`profile` is the name of a profile of the shared AWS configuration. Needs boto3."""

DYNAMODB_VARIABLES = {
    "s3_locking_provider": "AWS_S3_LOCKING_PROVIDER",
    "dynamo_table_name": "DELTA_DYNAMO_TABLE_NAME",
    "endpoint_url_dynamodb": "AWS_ENDPOINT_URL_DYNAMODB",
    "region_dynamodb": "AWS_REGION_DYNAMODB",
    "access_key_id_dynamodb": "AWS_ACCESS_KEY_ID_DYNAMODB",
    "secret_access_key_dynamodb": "AWS_SECRET_ACCESS_KEY_DYNAMODB",
    "session_token_dynamodb": "AWS_SESSION_TOKEN_DYNAMODB",
}
"""The options of S3 with DynamoDB, and their environment variables."""

DYNAMODB_OPTIONS = frozenset(DYNAMODB_VARIABLES) | {"dynamodb_scheme"}
"""`s3_locking_provider=dynamodb` turns it on; `none` turns it off when the environment turns it on.
`dynamodb_scheme` is the scheme (s3, s3a, s3n) that the table's other writers use in its URI."""

GCS_OPTIONS = frozenset(
    {"service_account", "service_account_key", "application_credentials", "base_url", "bearer_token"}
    | {"skip_signature"}
)
"""The options of the Google Cloud Storage client."""

GCS_ALIASES = {"service_account_path": "service_account", "endpoint": "base_url", "endpoint_url": "base_url"}
"""Alternative names of GCS options."""

GCS_PREFIXES = ("google_", "gcs_")

AZURE_OPTIONS = frozenset(
    {"account_name", "account_key", "client_id", "client_secret", "tenant_id", "authority_host"}
    | {"sas_key", "token", "endpoint", "msi_endpoint", "object_id", "msi_resource_id"}
    | {"federated_token_file", "use_azure_cli", "skip_signature", "disable_tagging", "use_fabric_endpoint"}
)
"""The options of the Azure client."""

AZURE_ALIASES = {
    "access_key": "account_key",
    "sas_token": "sas_key",
    "bearer_token": "token",
    "endpoint_url": "endpoint",
}
"""Alternative names of Azure options."""

AZURE_PREFIXES = ("azure_storage_", "azure_")

WEBHDFS_OPTIONS = ("delegation_token", "timeout_seconds", "user", "webhdfs_endpoint")
"""The options of an HDFS store. Only this spelling is valid."""

_SECRETS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "sse_customer_key_base64"}
    | {"access_key_id_dynamodb", "secret_access_key_dynamodb", "session_token_dynamodb"}
    | {"service_account_key", "bearer_token", "account_key", "client_secret", "sas_key", "token"}
    | {"delegation_token", "proxy_url"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """The spellings of the options of one service."""

    prefixes: tuple[str, ...]
    names: frozenset[str]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def plain(self, given: str) -> str | None:
        """The canonical name of an option; None when it is not an option of the service."""
        return plain_name(given, self.prefixes, self.names | CLIENT_OPTIONS, self.aliases)


_FAMILIES = (
    _Family(prefixes=S3_PREFIXES, names=S3_OPTIONS | PROFILE_OPTIONS | DYNAMODB_OPTIONS, aliases=S3_ALIASES),
    _Family(prefixes=GCS_PREFIXES, names=GCS_OPTIONS, aliases=GCS_ALIASES),
    _Family(prefixes=AZURE_PREFIXES, names=AZURE_OPTIONS, aliases=AZURE_ALIASES),
)

ALL_OPTIONS = frozenset(
    {f"{family.prefixes[0]}{name}" for family in _FAMILIES for name in family.names}
    | CLIENT_OPTIONS
    | set(WEBHDFS_OPTIONS)
)
"""Every option of every store, in one spelling."""


def is_option(name: str) -> bool:
    """Whether any store takes an option with this name, in any spelling that the store accepts."""
    return name in WEBHDFS_OPTIONS or any(family.plain(name) is not None for family in _FAMILIES)


def is_secret(name: str) -> bool:
    """Whether the value of an option must not be shown."""
    return name in _SECRETS or any(family.plain(name) in _SECRETS for family in _FAMILIES)
