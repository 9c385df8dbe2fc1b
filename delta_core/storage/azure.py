"""Azure Blob Storage and Data Lake Storage Gen2, through Put Blob with a precondition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from obstore import exceptions, store

from delta_core.clock import Clock
from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.object_store_clients import ClientOptions, client_pair
from delta_core.storage.option_names import AZURE_ALIASES, AZURE_OPTIONS, AZURE_PREFIXES
from delta_core.storage.remote_uri import RemoteUri, parse_remote_uri
from delta_core.storage.store_options import FALSE, checked_options, environment_value

_ENDPOINTS = ("storage_endpoint", "endpoint")

_CREDENTIALS = {
    "token": "bearer_token",
    "account_key": "access_key",
    "federated_token_file": "workload_identity",
    "client_secret": "client_secret",
    "sas_key": "sas_token",
    "use_azure_cli": "azure_cli",
    "object_id": "managed_identity",
    "msi_resource_id": "managed_identity",
}
"""The options of which one names who asks, in the client's order, and what the client calls it."""

_OF_APPLICATIONS = frozenset({"workload_identity", "client_secret"})
_CLIENTS = ("storage_client_id", "client_id")
_TENANTS = ("storage_tenant_id", "storage_authority_id", "tenant_id", "authority_id")

_NO_ACCOUNT = "Account must be specified"
"""What the client says; which variables it reads is its own."""

_CLOUDS = ("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de")
_FABRIC = "fabric.microsoft.com"


def open_azure(uri: str, options: Mapping[str, str], clock: Clock) -> ObjectLogStore:
    """A store whose commits are Put Blob with `If-None-Match: *`. Makes no request.

    `abfss://container@account.dfs.core.windows.net/path` names its account, `az://container/path` takes it
    from the option `account_name` or the environment.

    Raises:
        InvalidUriError: no container, one where only a container is expected, or a host that is none of
            Azure's.
        ConfigurationError: an option that is not allowed, or nothing names an account.
    """
    root = parse_remote_uri(uri)
    container, place = _container_and_place(root)
    checked = checked_options(options, prefixes=AZURE_PREFIXES, allowed=AZURE_OPTIONS, aliases=AZURE_ALIASES)
    config: dict[str, Any] = {**checked.service}
    if place is not None:
        config["account_name"] = place.account
    credential = _credential_type(config)
    if credential is not None:
        # Else what the environment has goes first, such as a pod's own identity.
        config["credential_type"] = credential

    def build(client: ClientOptions, retry: ClientOptions) -> store.AzureStore:
        typed: Any = config
        try:
            return store.AzureStore(container, config=typed, client_options=client, retry_config=retry)
        except exceptions.BaseError as error:
            if _NO_ACCOUNT not in str(error):
                raise
        raise ConfigurationError(
            f"No account is named for the container {container!r}.",
            cause="An az: URI names the container alone.",
            fix="Pass account_name, or set AZURE_STORAGE_ACCOUNT_NAME; or write the URI as "
            "abfss://container@account.dfs.core.windows.net/path.",
        )

    endpoint, emulator = config.get("endpoint"), _emulator()
    if endpoint:
        config["use_emulator"] = False  # else the client prefers it to the option
    elif emulator is None:
        endpoint = environment_value("AZURE_", _ENDPOINTS)
    if not endpoint and emulator is None and place is not None:
        # The client knows the hosts of two clouds.
        if place.is_fabric:
            config["use_fabric_endpoint"] = True
        elif place.blob_host is not None:
            endpoint = f"https://{place.blob_host}"
    if endpoint:
        # Of several variables the client takes the one that happens to be the last.
        config["endpoint"] = str(endpoint)
    endpoint = endpoint or emulator
    clients = client_pair(
        build,
        checked,
        bucket=container,
        endpoint_name="endpoint",
        endpoint=str(endpoint) if endpoint else None,
        plain_http="endpoint" not in config,
    )
    return ObjectLogStore(root, clients, clock=clock)


def _credential_type(options: Mapping[str, Any]) -> str | None:
    """The kind of credential that the options name, in the client's words; None where they name none."""
    named = {name for name, value in options.items() if value}
    has_client = "client_id" in named or environment_value("AZURE_", _CLIENTS) is not None
    has_tenant = "tenant_id" in named or environment_value("AZURE_", _TENANTS) is not None
    for name, kind in _CREDENTIALS.items():
        if name in named and (kind not in _OF_APPLICATIONS or (has_client and has_tenant)):
            return kind
    if "client_id" not in named:
        return None
    in_pod = has_tenant and environment_value("AZURE_", ["federated_token_file"]) is not None
    return "workload_identity" if in_pod else "managed_identity"


def _emulator() -> str | None:
    """Where the emulator is that the environment turns on; None when it does not."""
    if (environment_value("AZURE_", ["storage_use_emulator"]) or "false").lower() in FALSE:
        return None
    return environment_value("AZURITE_", ["blob_storage_url"]) or "http://127.0.0.1:10000"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Whose account an `abfss:` URI names, and in which cloud.

    Attributes:
        blob_host: what answers for its blobs, where the client would ask another.
        is_fabric: whether it is OneLake.
    """

    account: str
    blob_host: str | None = None
    is_fabric: bool = False


def _container_and_place(root: RemoteUri) -> tuple[str, _Place | None]:
    container, at, host = root.authority.partition("@")
    if root.scheme == "abfss":
        if not at or "." not in host:
            raise InvalidUriError(
                "The abfss: URI names no container or no account.",
                fix="Write abfss://container@account.dfs.core.windows.net/path.",
            )
        return container, _place(host)
    if at:
        raise InvalidUriError(
            "The az: URI has an account in front of its path.",
            fix="Write az://container/path and pass account_name, or use abfss:.",
        )
    return container, None


def _place(host: str) -> _Place:
    account, _, domain = host.lower().partition(".")
    service, _, cloud = domain.partition(".")
    if service in ("dfs", "blob") and account:
        if cloud == _FABRIC:
            return _Place(account=account, is_fabric=True)
        if cloud in _CLOUDS:
            elsewhere = cloud != _CLOUDS[0]
            return _Place(account=account, blob_host=f"{account}.blob.{cloud}" if elsewhere else None)
    raise InvalidUriError(
        f"The abfss: URI names the host {host!r}, which is none of Azure's.",
        cause=f"Accounts are below dfs. or blob. of {', '.join((*_CLOUDS, _FABRIC))}.",
        fix="Write abfss://container@account.dfs.core.windows.net/path; for another service write "
        "az://container/path and pass endpoint and account_name.",
    )
