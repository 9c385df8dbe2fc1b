"""Amazon S3, and servers that speak its protocol, with conditional writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from obstore import store

from delta_core.errors import ConfigurationError
from delta_core.storage.object_store import Clients
from delta_core.storage.object_store_clients import ClientOptions, client_pair
from delta_core.storage.option_names import PROFILE_OPTIONS, S3_ALIASES, S3_OPTIONS, S3_PREFIXES
from delta_core.storage.store_options import StoreOptions, checked_options, environment_value

_IDENTITY = frozenset(
    {"access_key_id", "skip_signature", "role_arn", "web_identity_token_file"}
    | {"container_credentials_relative_uri", "container_credentials_full_uri"}
)
_TOKENS = ("session_token", "token")

_ENDPOINTS = ("endpoint_url_s3", "endpoint_url", "endpoint")


def s3_options(options: Mapping[str, str], *, own: frozenset[str] = frozenset()) -> StoreOptions:
    """Checked options of S3, and the options `own` of a store that is built on S3."""
    return checked_options(
        options,
        prefixes=S3_PREFIXES,
        allowed=S3_OPTIONS,
        aliases=S3_ALIASES,
        own=PROFILE_OPTIONS | own,
    )


def s3_clients(bucket: str, options: StoreOptions) -> Clients:
    """The two clients of a bucket."""
    endpoint = endpoint_of(options)

    def build(client: ClientOptions, retry: ClientOptions) -> store.S3Store:
        config: Any = {**options.service, "conditional_put": "etag"}
        if endpoint is not None:
            # Otherwise the client may prefer another variable, even to the option.
            config["aws_endpoint_url_s3"] = endpoint
        return store.S3Store(
            bucket,
            config=config,
            client_options=client,
            retry_config=retry,
            credential_provider=_credentials(options),
        )

    return client_pair(build, options, bucket=bucket, endpoint_name="endpoint", endpoint=endpoint)


def endpoint_of(options: StoreOptions) -> str | None:
    """The address that is used instead of Amazon's, from the options or the environment."""
    given = options.service.get("endpoint")
    return str(given) if given else environment_value("AWS_", _ENDPOINTS)


def profile_of(options: StoreOptions) -> str | None:
    """The profile of the shared AWS configuration: the option `profile`, or else AWS_PROFILE, or else None.

    AWS_PROFILE is ignored when the options select other credentials, such as keys or a role, and when the
    environment has AWS_ACCESS_KEY_ID.
    """
    named = not _IDENTITY.isdisjoint(options.service) or bool(os.environ.get("AWS_ACCESS_KEY_ID"))
    return options.own.get("profile") or (None if named else os.environ.get("AWS_PROFILE"))


def _credentials(options: StoreOptions) -> Any:
    """Credentials that override the client's own choice from the environment; None without an override."""
    profile = profile_of(options)
    if profile:
        return _profile_credentials(profile)
    key, secret = options.service.get("access_key_id"), options.service.get("secret_access_key")
    if key and secret:
        if "session_token" in options.service or environment_value("AWS_", _TOKENS) is None:
            return None
        # Without this the client would send the environment's token with these keys.
        return lambda: {
            "access_key_id": str(key),
            "secret_access_key": str(secret),
            "token": None,
            "expires_at": None,
        }
    if "role_arn" in options.service and not key and environment_value("AWS_", ["access_key_id"]):
        raise ConfigurationError(
            "The role of the storage options is not assumed.",
            cause="The environment has AWS_ACCESS_KEY_ID, which the client prefers.",
            fix="Unset the variable, or pass the role's keys as options.",
        )
    return None


def _profile_credentials(profile: str) -> Any:
    """boto3's credentials for a profile."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        raise ConfigurationError(
            f"The AWS profile {profile!r} cannot be read.",
            cause="The package boto3, which reads the shared configuration, is not installed.",
            fix="Install deltaward[dynamodb], or pass the credentials as options.",
        ) from error
    try:
        return Boto3CredentialProvider(session=boto3.session.Session(profile_name=profile))
    except BotoCoreError as error:
        raise ConfigurationError(
            f"The AWS profile {profile!r} cannot be read.",
            cause=type(error).__name__,
            fix="Check the name of the profile and the shared configuration.",
        ) from None
    except ValueError:
        # The only ValueError of the provider; its message refers to its own code.
        raise ConfigurationError(
            f"The AWS profile {profile!r} has no credentials.",
            cause="Neither the shared configuration nor this machine provides credentials for it.",
            fix="Put keys or a role into the profile, or pass the credentials as options.",
        ) from None
