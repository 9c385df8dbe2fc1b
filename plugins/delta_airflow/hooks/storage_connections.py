"""Storage options from a connection that the company has: `aws`, `google_cloud_platform`, `wasb` and others.

`storage_conn_id` of a `deltaward` connection names it. It is read when a task runs, so that credentials that
were rotated arrive, and nothing of it goes into a specification, an XCom or a log. One file for each service
says what becomes of each of its fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from airflow.sdk import Connection

from delta_airflow.hooks import storage_aws, storage_azure, storage_google, storage_hdfs
from delta_airflow.hooks.given_connection import GivenConnection, Translation
from delta_airflow.hooks.settings import ConnectionSettings
from delta_core.errors import ConfigurationError
from delta_core.storage.option_names import (
    AZURE_ALIASES,
    AZURE_OPTIONS,
    AZURE_PREFIXES,
    DYNAMODB_OPTIONS,
    GCS_ALIASES,
    GCS_OPTIONS,
    GCS_PREFIXES,
    PROFILE_OPTIONS,
    S3_ALIASES,
    S3_OPTIONS,
    S3_PREFIXES,
    WEBHDFS_OPTIONS,
    is_secret,
)
from delta_core.storage.remote_uri import REMOTE_SCHEMES
from delta_core.storage.store_options import CLIENT_OPTIONS, plain_name
from delta_core.storage.uri import uri_scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    """A kind of connection, and how its stores spell their options.

    Attributes:
        schemes: of the URIs that its stores serve.
        identity: the options, by their plain names, that together say who asks.
    """

    translate: Callable[[GivenConnection], Translation]
    schemes: frozenset[str]
    prefixes: tuple[str, ...]
    names: frozenset[str]
    aliases: Mapping[str, str]
    identity: frozenset[str]

    def plain(self, name: str) -> str:
        """The option that a spelling means; the spelling itself where it is none of this service."""
        return plain_name(name, self.prefixes, self.names, self.aliases) or name


def _azure(translate: Callable[[GivenConnection], Translation]) -> _Service:
    return _Service(
        translate=translate,
        schemes=frozenset({"az", "azure", "abfs", "abfss"}),
        prefixes=AZURE_PREFIXES,
        names=AZURE_OPTIONS | CLIENT_OPTIONS,
        aliases=AZURE_ALIASES,
        identity=storage_azure.IDENTITY,
    )


_HDFS = _Service(
    translate=storage_hdfs.translate,
    schemes=frozenset({"hdfs", "webhdfs", "swebhdfs"}),
    prefixes=(),
    names=frozenset(WEBHDFS_OPTIONS),
    aliases={},
    identity=storage_hdfs.IDENTITY,
)

_SERVICES: Mapping[str, _Service] = {
    "aws": _Service(
        translate=storage_aws.translate,
        schemes=frozenset({"s3", "s3a", "s3n"}),
        prefixes=S3_PREFIXES,
        names=S3_OPTIONS | PROFILE_OPTIONS | DYNAMODB_OPTIONS | CLIENT_OPTIONS,
        aliases=S3_ALIASES,
        identity=storage_aws.IDENTITY,
    ),
    "google_cloud_platform": _Service(
        translate=storage_google.translate,
        schemes=frozenset({"gs"}),
        prefixes=GCS_PREFIXES,
        names=GCS_OPTIONS | CLIENT_OPTIONS,
        aliases=GCS_ALIASES,
        identity=storage_google.IDENTITY,
    ),
    "wasb": _azure(storage_azure.translate_wasb),
    "adls": _azure(storage_azure.translate_adls),
    "azure_data_lake": _azure(storage_azure.translate_data_lake),
    "hdfs": _HDFS,
    "webhdfs": _HDFS,
}

STORAGE_CONNECTION_TYPES = tuple(sorted(_SERVICES))
"""The types of connection that `storage_conn_id` may name."""


_NO_PROVIDER = (
    "`airflow connections add` makes this of a type whose provider is not installed beside it, such as "
    "apache-airflow-providers-amazon for aws"
)


def with_storage_of(settings: ConnectionSettings, connection: Connection) -> ConnectionSettings:
    """The settings with the storage options of another connection beneath their own.

    An own option wins over the other connection's. Who asks is said as a whole: where the own options name a
    credential of the service, none of the other connection's is taken.

    Raises:
        ConfigurationError: the connection is of a type without a store, or says something about where the
            store is or who asks that no option of the store says. Values are not in the message.
    """
    given = _given(connection)
    service = _SERVICES.get(given.conn_type)
    if service is None:
        raise ConfigurationError(
            f"The connection {given.conn_id} of storage_conn_id is of the type {given.conn_type!r}",
            cause=_NO_PROVIDER if given.conn_type == "generic" else "It says nothing about a store",
            fix=f"Name one of the type {', '.join(STORAGE_CONNECTION_TYPES)}",
        )
    translation = service.translate(given)
    own = {service.plain(name) for name in settings.storage_options}
    if own & service.identity:
        own |= service.identity
    for refusal in translation.refusals:
        if not refusal.settled_by & own:
            raise refusal.error
    beneath = {name: value for name, value in translation.options.items() if service.plain(name) not in own}
    return replace(
        settings, storage_options={**beneath, **settings.storage_options}, storage_type=given.conn_type
    )


def require_store_of(settings: ConnectionSettings, uri: str) -> None:
    """Hold a URI against the kind of store that `storage_conn_id` is for. Local ones are always allowed.

    Raises:
        ConfigurationError: it is in another kind of store.
    """
    scheme = uri_scheme(uri)
    service = _SERVICES.get(settings.storage_type or "")
    if service is not None and scheme in REMOTE_SCHEMES - service.schemes:
        raise ConfigurationError(
            f"The connection {settings.storage_conn_id} is of the type {settings.storage_type}, "
            f"and the URI begins with {scheme}:",
            cause=f"Such a connection is for {', '.join(f'{s}:' for s in sorted(service.schemes))}",
            fix="Use a connection whose storage_conn_id fits the store, or leave storage_conn_id out",
        )


def secrets_of(options: Mapping[str, str]) -> list[str]:
    """The values among storage options that must not be shown, and secrets that are a part of one."""
    found = []
    for name, value in options.items():
        if is_secret(name):
            found.append(value)
            found.extend(_private_keys(value))
    return found


def _private_keys(value: str) -> list[str]:
    """The secrets in a service account's key file, which may be shown without what surrounds them."""
    if not value.lstrip().startswith("{"):
        return []
    try:
        document = json.loads(value)
    except ValueError:
        return []
    names = ("private_key", "private_key_id", "client_secret", "refresh_token")
    return [text for name in names if isinstance(text := document.get(name), str) and text]


def _given(connection: Connection) -> GivenConnection:
    """The fields of a connection.

    Raises:
        ConfigurationError: its extra is no JSON object, which Airflow would take for an empty one.
    """
    conn_id, conn_type = str(connection.conn_id), str(connection.conn_type or "").replace("-", "_")
    extra = connection.extra_dejson
    if not isinstance(extra, dict) or (not extra and _holds_something(connection.extra)):
        raise ConfigurationError(
            f"The extra of the connection {conn_id} is no JSON object",
            cause="What it says about the store and its credentials would be left out",
            fix="Correct it",
        )
    return GivenConnection(
        conn_id=conn_id,
        conn_type=conn_type,
        fields={
            "login": connection.login,
            "password": connection.password,
            "host": connection.host,
            "schema": connection.schema,
            "port": connection.port,
        },
        extra=extra,
    )


def _holds_something(extra: str | None) -> bool:
    return (extra or "").strip() not in ("", "{}", "null")
