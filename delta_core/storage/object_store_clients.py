"""The two clients of a bucket, made in one way for every service."""

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
"""Options as the client declares them: a typed dictionary for each service."""

Build = Callable[[ClientOptions, ClientOptions], "ObjectStore"]
"""A client from options of the HTTP client and from how often it tries again."""

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
    """A client that tries again and one that does not.

    Args:
        build: makes one.
        options: the checked options.
        bucket: or container.
        endpoint_name: the option's name, for messages.
        endpoint: an address other than the service's own; None means that preconditions are proved.
        plain_http: whether the client goes there without TLS of its own accord.

    Raises:
        ConfigurationError: the endpoint is no address of a service, or is one without TLS on another machine
            and `allow_http` is not set, or the client refuses the options.
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
            fix="Check the options against those that docs/stores.md lists for the store.",
        ) from None


def _require_tls(endpoint: str) -> None:
    # The client would say no more than "builder error", and that with the first request.
    if urlsplit(endpoint).scheme.lower() == "http":
        raise ConfigurationError(
            "Plain HTTP to another machine needs allow_http=true.",
            cause="Without TLS, whoever is on the way can read and change what is sent.",
            fix="Write https:// in the endpoint, or pass the storage option allow_http=true.",
        )


def _without_values(text: str, options: StoreOptions) -> str:
    """A client's message without the options that it was given: a key may be where a path is expected."""
    values = [str(value) for value in (*options.service.values(), *options.client.values())]
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "...")
    return text
