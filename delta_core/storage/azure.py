"""Azure Blob Storage and Data Lake Storage Gen2, through Put Blob with a precondition."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from obstore.store import AzureStore

from delta_core.clock import Clock
from delta_core.errors import InvalidUriError
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.object_store_clients import ClientOptions, client_pair
from delta_core.storage.remote_uri import RemoteUri, parse_remote_uri
from delta_core.storage.store_options import checked_options

AZURE_OPTIONS = frozenset(
    {"account_name", "account_key", "client_id", "client_secret", "tenant_id", "authority_host"}
    | {"sas_key", "token", "endpoint", "msi_endpoint", "object_id", "msi_resource_id"}
    | {"federated_token_file", "use_azure_cli", "skip_signature", "disable_tagging", "use_fabric_endpoint"}
)
"""What the client takes."""

_ALIASES = {
    "access_key": "account_key",
    "sas_token": "sas_key",
    "bearer_token": "token",
    "endpoint_url": "endpoint",
}


def open_azure(uri: str, options: Mapping[str, str], clock: Clock) -> ObjectLogStore:
    """A store whose commits are Put Blob with `If-None-Match: *`. Makes no request.

    `abfss://container@account.dfs.core.windows.net/path` names its account, `az://container/path` takes it
    from the option `account_name` or the environment.

    Raises:
        InvalidUriError: no container, or one where only a container is expected.
        ConfigurationError: an option that is not allowed.
    """
    root = parse_remote_uri(uri)
    container, account = _container_and_account(root)
    checked = checked_options(
        options, prefixes=("azure_storage_", "azure_"), allowed=AZURE_OPTIONS, aliases=_ALIASES
    )
    config: dict[str, Any] = {**checked.service}
    if account is not None:
        config["account_name"] = account

    def build(client: ClientOptions, retry: ClientOptions) -> AzureStore:
        typed: Any = config
        return AzureStore(container, config=typed, client_options=client, retry_config=retry)

    endpoint = config.get("endpoint") or os.environ.get("AZURE_ENDPOINT")
    clients = client_pair(
        build,
        checked,
        bucket=container,
        endpoint_name="endpoint",
        endpoint=None if endpoint is None else str(endpoint),
    )
    return ObjectLogStore(root, clients, clock=clock)


def _container_and_account(root: RemoteUri) -> tuple[str, str | None]:
    container, at, host = root.authority.partition("@")
    if root.scheme == "abfss":
        if not at or "." not in host:
            raise InvalidUriError(
                "The abfss: URI names no container or no account.",
                fix="Write abfss://container@account.dfs.core.windows.net/path.",
            )
        return container, host.partition(".")[0]
    if at:
        raise InvalidUriError(
            "The az: URI has an account in front of its path.",
            fix="Write az://container/path and pass account_name, or use abfss:.",
        )
    return container, None
