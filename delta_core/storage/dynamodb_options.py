"""Location and credentials of the DynamoDB table for S3 commits, from options and the environment.

All writers of a table must use the same DynamoDB table; otherwise they do not exclude each other. The names,
in options and in the environment, are therefore those of the `deltalake` package, and region and account are
found in the same way as by the S3 client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_core.errors import ConfigurationError
from delta_core.storage.dynamodb_entries import DEFAULT_TABLE
from delta_core.storage.option_names import DYNAMODB_VARIABLES
from delta_core.storage.s3 import profile_of
from delta_core.storage.service_address import require_service_address
from delta_core.storage.store_options import StoreOptions

# Only the S3 client takes these. DynamoDB would be asked with the credentials of another account.
_CREDENTIALS_OF_S3 = frozenset(
    {"role_arn", "web_identity_token_file"}
    | {"container_credentials_relative_uri", "container_credentials_full_uri"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbSettings:
    """The DynamoDB table and the arguments to access it.

    Attributes:
        client_arguments: arguments for boto3's client; boto3 finds missing ones by its own rules.
        profile: profile of the shared AWS configuration.
        spelling: the URI scheme that the table's other writers use; None detects it.
    """

    table_name: str
    client_arguments: Mapping[str, Any] = field(repr=False)
    profile: str | None
    spelling: str | None


def dynamodb_settings(options: StoreOptions) -> DynamoDbSettings | None:
    """The settings from options and environment; None when commits are conditional writes.

    Raises:
        ConfigurationError: the provider is unknown, the endpoint is not the address of a service, a key is
            incomplete, or the credentials are of a kind that only the S3 client takes.
    """
    provider = _value(options, "s3_locking_provider")
    if provider is None or provider.lower() == "none":
        return None
    if provider.lower() != "dynamodb":
        raise ConfigurationError(
            f"The locking provider {provider!r} is unknown.",
            fix="Write dynamodb, or none, as an option or in AWS_S3_LOCKING_PROVIDER.",
        )
    return DynamoDbSettings(
        table_name=_value(options, "dynamo_table_name") or DEFAULT_TABLE,
        client_arguments=_client_arguments(options),
        profile=profile_of(options),
        spelling=options.own.get("dynamodb_scheme"),
    )


def _client_arguments(options: StoreOptions) -> Mapping[str, Any]:
    # boto3 itself reads AWS_DEFAULT_REGION, but not AWS_REGION.
    region = _value(options, "region_dynamodb") or options.service.get("region")
    endpoint = _value(options, "endpoint_url_dynamodb")
    if endpoint is not None:
        require_service_address("endpoint_url_dynamodb", endpoint)
    arguments = {
        "region_name": region or os.environ.get("AWS_REGION"),
        "endpoint_url": endpoint,
        **_keys(options),
    }
    return {name: value for name, value in arguments.items() if value}


def _keys(options: StoreOptions) -> Mapping[str, Any]:
    names = ("access_key_id", "secret_access_key", "session_token")
    own = {f"aws_{name}": _value(options, f"{name}_dynamodb") for name in names}
    if own["aws_access_key_id"] or own["aws_secret_access_key"]:
        if not (own["aws_access_key_id"] and own["aws_secret_access_key"]):
            raise ConfigurationError(
                "The keys for DynamoDB are incomplete.",
                cause="Only one of access_key_id_dynamodb and secret_access_key_dynamodb is given.",
                fix="Pass both or neither.",
            )
        return own
    alone = sorted(_CREDENTIALS_OF_S3 & options.service.keys())
    if alone:
        raise ConfigurationError(
            f"DynamoDB's client does not take the option {alone[0]!r}.",
            cause="It would use other credentials than S3, and might find another DynamoDB table.",
            fix="Set the credentials in the environment, where both clients find them, or use a profile.",
        )
    return {f"aws_{name}": options.service.get(name) for name in names}


def _value(options: StoreOptions, name: str) -> str | None:
    """An option, or the environment variable with its name; None when neither is set."""
    return options.own.get(name) or os.environ.get(DYNAMODB_VARIABLES[name]) or None
