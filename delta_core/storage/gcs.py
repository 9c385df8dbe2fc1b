"""Google Cloud Storage, with preconditions on the object's generation."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from obstore import store

from delta_core.clock import Clock
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.object_store_clients import ClientOptions, client_pair
from delta_core.storage.option_names import GCS_ALIASES, GCS_OPTIONS, GCS_PREFIXES
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.store_options import StoreOptions, checked_options, environment_value


def open_gcs(uri: str, options: Mapping[str, str], clock: Clock) -> ObjectLogStore:
    """A store whose commits are PUTs with `x-goog-if-generation-match: 0`. Makes no request.

    Credentials: options, then GOOGLE_APPLICATION_CREDENTIALS, then those of the user or the machine.

    Raises:
        InvalidUriError: the URI has no bucket.
        ConfigurationError: an option is not allowed.
    """
    root = parse_remote_uri(uri)
    checked = checked_options(options, prefixes=GCS_PREFIXES, allowed=GCS_OPTIONS, aliases=GCS_ALIASES)

    config: Any = {**checked.service}
    base_url = config.get("base_url") or environment_value("GOOGLE_", ["base_url"]) or _key_base_url(checked)
    if base_url:
        config["base_url"] = str(base_url)

    def build(client: ClientOptions, retry: ClientOptions) -> store.GCSStore:
        return store.GCSStore(root.authority, config=config, client_options=client, retry_config=retry)

    clients = client_pair(
        build,
        checked,
        bucket=root.authority,
        endpoint_name="base_url",
        endpoint=str(base_url) if base_url else None,
    )
    return ObjectLogStore(root, clients, clock=clock)


def _key_base_url(options: StoreOptions) -> str | None:
    """The server address in a service account's key, when it differs from Google's; else None.

    The client reports a key that cannot be read.
    """
    key = options.service.get("service_account_key") or environment_value("GOOGLE_", ["service_account_key"])
    path = (
        options.service.get("service_account")
        or environment_value("GOOGLE_", ["service_account", "service_account_path"])
        or os.environ.get("SERVICE_ACCOUNT")
    )
    for text in (key, _string_of(path)):
        with suppress(ValueError, AttributeError):
            base_url = json.loads(str(text)).get("gcs_base_url")
            if base_url:
                return str(base_url)
    return None


def _string_of(path: object) -> str:
    with suppress(OSError, ValueError):
        return Path(str(path)).read_text(encoding="utf-8") if path else ""
    return ""
