"""Storage options from an existing connection of type `aws`, `google_cloud_platform`, `wasb` and others.

`storage_conn_id` of a `deltaward` connection refers to it. It is read when a task runs, so that rotated
credentials take effect. None of its values goes into a job specification, an XCom or a log. One module per
service translates the fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from airflow.sdk import Connection

from delta_airflow.hooks import storage_aws, storage_azure, storage_google, storage_hdfs
from delta_airflow.hooks.connection_extra import extra_of
from delta_airflow.hooks.connection_fields import GivenConnection, Translation
from delta_airflow.hooks.settings import ConnectionSettings
from delta_core.errors import ConfigurationError
from delta_core.storage import REMOTE_SCHEMES, uri_scheme
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
from delta_core.storage.store_options import CLIENT_OPTIONS, plain_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    """A kind of connection, and the names of the options of its stores.

    Attributes:
        schemes: the URI schemes of its stores.
        identity: the plain names of the options that together make up the identity.
    """

    translate: Callable[[GivenConnection], Translation]
    schemes: frozenset[str]
    prefixes: tuple[str, ...]
    names: frozenset[str]
    aliases: Mapping[str, str]
    identity: frozenset[str]

    def plain(self, name: str) -> str:
        """The plain name of an option; the name as given if it is not an option of this service."""
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
"""The types of connection that `storage_conn_id` may refer to."""

_NO_PROVIDER = (
    "`airflow connections add` stores this type if the provider of the intended type is missing, such "
    "as apache-airflow-providers-amazon for aws."
)


def with_storage_of(settings: ConnectionSettings, connection: Connection) -> ConnectionSettings:
    """The settings, completed with the storage options of the connection that `storage_conn_id` names.

    Options in `settings` take precedence. The identity is taken as a whole: if `settings` contains a
    credential of the service, no credential of `connection` is used.

    Raises:
        ConfigurationError: the connection's type has no store, or a field about the store's address or the
            identity has no corresponding storage option. The message contains no values.
    """
    given = _given(connection)
    service = _SERVICES.get(given.conn_type)
    if service is None:
        raise ConfigurationError(
            f"The connection {given.conn_id} in storage_conn_id is of the type {given.conn_type!r}.",
            cause=_NO_PROVIDER
            if given.conn_type == "generic"
            else "Connections of this type describe no store.",
            fix=f"Use a connection of one of the types {', '.join(STORAGE_CONNECTION_TYPES)}.",
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
    """Check that a URI belongs to the kind of store of `storage_conn_id`. Local URIs are always allowed.

    Raises:
        ConfigurationError: the URI belongs to a different kind of store.
    """
    scheme = uri_scheme(uri)
    service = _SERVICES.get(settings.storage_type or "")
    if service is not None and scheme in REMOTE_SCHEMES - service.schemes:
        raise ConfigurationError(
            f"The connection {settings.storage_conn_id} is of the type {settings.storage_type}, "
            f"and the URI begins with {scheme}:.",
            cause=f"Such a connection is for {', '.join(f'{s}:' for s in sorted(service.schemes))}.",
            fix="Use a connection whose storage_conn_id matches the store, or leave storage_conn_id out.",
        )


def secrets_of(options: Mapping[str, str]) -> list[str]:
    """The secret values among storage options, and secrets that are part of such a value."""
    secrets = []
    for name, value in options.items():
        if is_secret(name):
            secrets.append(value)
            secrets.extend(_private_keys(value))
    return secrets


def _private_keys(value: str) -> list[str]:
    """The secrets in a service account's key file, which might appear in a log without their context."""
    if not value.lstrip().startswith("{"):
        return []
    try:
        document = json.loads(value)
    except ValueError:
        return []
    names = ("private_key", "private_key_id", "client_secret", "refresh_token")
    return [secret for name in names if isinstance(secret := document.get(name), str) and secret]


def _given(connection: Connection) -> GivenConnection:
    """The fields of a connection.

    Raises:
        ConfigurationError: the extra is not a JSON object.
    """
    conn_id, conn_type = str(connection.conn_id), str(connection.conn_type or "").replace("-", "_")
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
        extra=extra_of(connection),
    )
