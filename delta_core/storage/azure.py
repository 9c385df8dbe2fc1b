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
"""The options that select a credential, in the client's order, with the client's name for the credential."""

_OF_APPLICATIONS = frozenset({"workload_identity", "client_secret"})
_CLIENTS = ("storage_client_id", "client_id")
_TENANTS = ("storage_tenant_id", "storage_authority_id", "tenant_id", "authority_id")

_NO_ACCOUNT = "Account must be specified"
"""The client's message. The client decides which variables it reads."""

_CLOUDS = ("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de")
_FABRIC = "fabric.microsoft.com"


def open_azure(uri: str, options: Mapping[str, str], clock: Clock) -> ObjectLogStore:
    """A store whose commits are Put Blob with `If-None-Match: *`. Makes no request.

    An `abfss://container@account.dfs.core.windows.net/path` URI names its account. For
    `az://container/path` the account comes from the option `account_name` or the environment.

    Raises:
        InvalidUriError: the container is missing, the URI has more than a container where only a container
            is expected, or the host does not belong to Azure.
        ConfigurationError: an option is not allowed, or no account is given.
    """
    root = parse_remote_uri(uri)
    container, account = _container_and_account(root)
    checked = checked_options(options, prefixes=AZURE_PREFIXES, allowed=AZURE_OPTIONS, aliases=AZURE_ALIASES)
    config: dict[str, Any] = {**checked.service}
    if account is not None:
        config["account_name"] = account.account
    credential = _credential_type(config)
    if credential is not None:
        # Without it the client prefers the environment, such as a pod's own identity.
        config["credential_type"] = credential

    def build(client: ClientOptions, retry: ClientOptions) -> store.AzureStore:
        typed: Any = config
        try:
            return store.AzureStore(container, config=typed, client_options=client, retry_config=retry)
        except exceptions.BaseError as error:
            if _NO_ACCOUNT not in str(error):
                raise
        raise ConfigurationError(
            f"The account of the container {container!r} is missing.",
            cause="An az: URI contains only the container.",
            fix="Pass account_name, or set AZURE_STORAGE_ACCOUNT_NAME, or write the URI as "
            "abfss://container@account.dfs.core.windows.net/path.",
        )

    endpoint, emulator = config.get("endpoint"), _emulator()
    if endpoint:
        config["use_emulator"] = False  # otherwise the client prefers it to the option
    elif emulator is None:
        endpoint = environment_value("AZURE_", _ENDPOINTS)
    if not endpoint and emulator is None and account is not None:
        # The client knows only the hosts of two clouds.
        if account.is_fabric:
            config["use_fabric_endpoint"] = True
        elif account.blob_host is not None:
            endpoint = f"https://{account.blob_host}"
    if endpoint:
        # When several variables are set, the client's choice is arbitrary.
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
    """The kind of credential that the options select, as the client names it; None without one."""
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
    """The address of the emulator when the environment turns it on, else None."""
    if (environment_value("AZURE_", ["storage_use_emulator"]) or "false").lower() in FALSE:
        return None
    return environment_value("AZURITE_", ["blob_storage_url"]) or "http://127.0.0.1:10000"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """The account and the cloud of an `abfss:` URI.

    Attributes:
        blob_host: host of the account's blobs when it differs from the client's default.
        is_fabric: whether the account is in OneLake.
    """

    account: str
    blob_host: str | None = None
    is_fabric: bool = False


def _container_and_account(root: RemoteUri) -> tuple[str, _Account | None]:
    container, at, host = root.authority.partition("@")
    if root.scheme == "abfss":
        if not at or "." not in host:
            raise InvalidUriError(
                "The abfss: URI has no container or no account.",
                fix="Write abfss://container@account.dfs.core.windows.net/path.",
            )
        return container, _account_of_host(host)
    if at:
        raise InvalidUriError(
            "The az: URI contains an account.",
            fix="Write az://container/path and pass account_name, or use abfss:.",
        )
    return container, None


def _account_of_host(host: str) -> _Account:
    account, _, domain = host.lower().partition(".")
    service, _, cloud = domain.partition(".")
    if service in ("dfs", "blob") and account:
        if cloud == _FABRIC:
            return _Account(account=account, is_fabric=True)
        if cloud in _CLOUDS:
            elsewhere = cloud != _CLOUDS[0]
            return _Account(account=account, blob_host=f"{account}.blob.{cloud}" if elsewhere else None)
    raise InvalidUriError(
        f"The abfss: URI names the host {host!r}, which does not belong to Azure.",
        cause=f"Hosts of accounts end in dfs. or blob. and one of {', '.join((*_CLOUDS, _FABRIC))}.",
        fix="Write abfss://container@account.dfs.core.windows.net/path. For another service write "
        "az://container/path and pass endpoint and account_name.",
    )
