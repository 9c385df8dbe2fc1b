"""Where the DynamoDB table of S3's commits is, and who asks it: from options and the environment.

All writers of a table must ask the same DynamoDB table, or they do not exclude each other. So the names, in
options and in the environment, are those of the `deltalake` package, and region and account are found as
the S3 client finds them.
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

# Of the S3 client alone: with them, DynamoDB would be asked in another's name.
_CREDENTIALS_OF_S3 = frozenset(
    {"role_arn", "web_identity_token_file"}
    | {"container_credentials_relative_uri", "container_credentials_full_uri"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbSettings:
    """Which table, and how to ask it.

    Attributes:
        client_arguments: for boto3's client; what is not there, boto3 finds by its own rules.
        profile: of the shared AWS configuration.
        spelling: the scheme of the table's other writers; None finds it out.
    """

    table_name: str
    client_arguments: Mapping[str, Any] = field(repr=False)
    profile: str | None
    spelling: str | None


def dynamodb_settings(options: StoreOptions) -> DynamoDbSettings | None:
    """What options and environment say; None where commits are conditional writes.

    Raises:
        ConfigurationError: an unknown provider, an endpoint that is no service's, keys that are not whole, or
            credentials that only the S3 client takes.
    """
    provider = _value(options, "s3_locking_provider")
    if provider is None or provider.lower() == "none":
        return None
    if provider.lower() != "dynamodb":
        raise ConfigurationError(
            f"The locking provider {provider!r} is not known.",
            fix="Write dynamodb, or none, as an option or in AWS_S3_LOCKING_PROVIDER.",
        )
    return DynamoDbSettings(
        table_name=_value(options, "dynamo_table_name") or DEFAULT_TABLE,
        client_arguments=_client_arguments(options),
        profile=profile_of(options),
        spelling=options.own.get("dynamodb_scheme"),
    )


def _client_arguments(options: StoreOptions) -> Mapping[str, Any]:
    # boto3 itself reads AWS_DEFAULT_REGION, and not this one.
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
                "The keys for DynamoDB are not whole.",
                cause="Only one of access_key_id_dynamodb and secret_access_key_dynamodb is given.",
                fix="Give both, or none.",
            )
        return own
    alone = sorted(_CREDENTIALS_OF_S3 & options.service.keys())
    if alone:
        raise ConfigurationError(
            f"DynamoDB's client does not take the option {alone[0]!r}.",
            cause="It would ask DynamoDB in another's name than S3, and may find another table.",
            fix="Set it in the environment, where both find it, or name a profile.",
        )
    return {f"aws_{name}": options.service.get(name) for name in names}


def _value(options: StoreOptions, name: str) -> str | None:
    """An option, or the variable of its name; None when neither says anything."""
    return options.own.get(name) or os.environ.get(DYNAMODB_VARIABLES[name]) or None
