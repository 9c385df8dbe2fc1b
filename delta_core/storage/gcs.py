"""Google Cloud Storage, with preconditions on the object's generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obstore.store import GCSStore

from delta_core.clock import Clock
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.object_store_clients import ClientOptions, client_pair
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.store_options import checked_options

GCS_OPTIONS = frozenset(
    {"service_account", "service_account_key", "application_credentials", "base_url", "bearer_token"}
    | {"skip_signature"}
)
"""What the client takes."""

_ALIASES = {"service_account_path": "service_account", "endpoint": "base_url", "endpoint_url": "base_url"}


def open_gcs(uri: str, options: Mapping[str, str], clock: Clock) -> ObjectLogStore:
    """A store whose commits are PUTs with `x-goog-if-generation-match: 0`. Makes no request.

    Credentials: options, then GOOGLE_APPLICATION_CREDENTIALS, the user's or the machine's own.

    Raises:
        InvalidUriError: no bucket.
        ConfigurationError: an option that is not allowed.
    """
    root = parse_remote_uri(uri)
    checked = checked_options(options, prefixes=("google_", "gcs_"), allowed=GCS_OPTIONS, aliases=_ALIASES)

    def build(client: ClientOptions, retry: ClientOptions) -> GCSStore:
        config: Any = checked.service
        return GCSStore(root.authority, config=config, client_options=client, retry_config=retry)

    base_url = checked.service.get("base_url")
    clients = client_pair(
        build,
        checked,
        bucket=root.authority,
        endpoint_name="base_url",
        endpoint=None if base_url is None else str(base_url),
    )
    return ObjectLogStore(root, clients, clock=clock)
