"""The two clients of a bucket, created in the same way for every service."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from obstore import exceptions

from delta_core.errors import ConfigurationError
from delta_core.storage.object_store import Clients
from delta_core.storage.object_store_errors import redacted
from delta_core.storage.service_address import is_loopback, require_service_address
from delta_core.storage.store_options import StoreOptions

if TYPE_CHECKING:
    from obstore.store import ObjectStore

ClientOptions = Any
"""Options with the client's types: a typed dictionary for each service."""

Build = Callable[[ClientOptions, ClientOptions], "ObjectStore"]
"""Creates a client from the options of its HTTP client and its retry options."""

_PATIENT = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=10),
        "base": 2,
    },
}
_SINGLE = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}

_SHORTEST_SECRET = 4


def client_pair(
    build: Build,
    options: StoreOptions,
    *,
    bucket: str,
    endpoint_name: str,
    endpoint: str | None,
    plain_http: bool = False,
) -> Clients:
    """A client that retries and a client that makes one attempt.

    Args:
        build: creates a client.
        options: the checked options.
        bucket: the bucket or container.
        endpoint_name: the name of the endpoint option, for messages.
        endpoint: an address other than the service's own; None means that preconditions are proved.
        plain_http: whether the client connects without TLS by default.

    Raises:
        ConfigurationError: the endpoint is not the address of a service, or needs `allow_http` because it is
            on another machine without TLS, or the client refuses the options.
    """
    client: dict[str, Any] = {"timeout": "60s", "connect_timeout": "10s", **options.client}
    if endpoint is not None:
        require_service_address(endpoint_name, endpoint)
        if is_loopback(endpoint):
            client.setdefault("allow_http", True)
        elif not plain_http and client.get("allow_http") is not True:
            _require_tls(endpoint)
    try:
        return Clients(
            lambda: (build(client, _PATIENT), build(client, _SINGLE)),
            proved=endpoint is None,
            place=f"{endpoint or ''} {bucket}",
        )
    except (exceptions.BaseError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"The store of bucket {bucket!r} cannot be opened with these options.",
            cause=redacted(_without_values(str(error), options)),
            fix="Check the options against the list in docs/stores.md.",
        ) from None


def _require_tls(endpoint: str) -> None:
    # The client would only report "builder error", at the first request.
    if urlsplit(endpoint).scheme.lower() == "http":
        raise ConfigurationError(
            "Plain HTTP to another machine needs allow_http=true.",
            cause="Without TLS, others in the network can read and change the requests.",
            fix="Write https:// in the endpoint, or pass the storage option allow_http=true.",
        )


def _without_values(message: str, options: StoreOptions) -> str:
    """A client's message without the values of options: a value may be a key."""
    values = [str(value) for value in (*options.service.values(), *options.client.values())]
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            message = message.replace(value, "...")
    return message
