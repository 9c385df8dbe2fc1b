"""Where a table on HDFS is and how its NameNodes are asked: the URI and the options of a WebHDFS store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.storage.option_names import WEBHDFS_OPTIONS
from delta_core.storage.remote_uri import RemoteUri, parse_remote_uri
from delta_core.storage.service_address import require_service_address

WEBHDFS_SCHEMES = ("hdfs", "swebhdfs", "webhdfs")

DEFAULT_TIMEOUT_SECONDS = 60.0

# Hadoop 3's `dfs.namenode.https-address` and `dfs.namenode.http-address`.
_DEFAULT_PORTS = {"swebhdfs": 9871, "webhdfs": 9870}
_HINT = "Write webhdfs://host:9870/path, swebhdfs://host:9871/path or hdfs://host/path."


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHdfsAddress:
    """A table's place, its NameNodes and who asks.

    Attributes:
        uri: canonical: see `delta_core.storage.remote_uri`.
        root: the table root's absolute HDFS path, decoded; `""` is the root of the file system.
        endpoints: base URLs of the NameNodes' HTTP, in the order in which they are tried.
        user: for simple authentication (`user.name`).
        delegation_token: stands for a Kerberos login; never printed.
        timeout_seconds: of each step of a request: connecting, sending, waiting for the next bytes.
    """

    uri: str
    root: str
    endpoints: tuple[str, ...]
    user: str | None = None
    delegation_token: str | None = field(default=None, repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


def webhdfs_address(uri: str, options: Mapping[str, str]) -> WebHdfsAddress:
    """The address that a URI and the options of a store say. Makes no request.

    Raises:
        InvalidUriError: another scheme, no host, a host that is no service's address, a user, a query or
            fragment, or a path that climbs.
        ConfigurationError: an unknown option, or a value that is not valid.
    """
    unknown = sorted(set(options) - set(WEBHDFS_OPTIONS))
    if unknown:
        raise ConfigurationError(
            f"A WebHDFS store has no option {', '.join(map(repr, unknown))}.",
            fix=f"Known are: {', '.join(WEBHDFS_OPTIONS)}.",
        )
    place = _place(uri)
    host, _, port = place.authority.partition(":")
    given = options.get("webhdfs_endpoint")
    if given is not None:
        endpoints = tuple(_endpoint(text.strip()) for text in given.split(",") if text.strip())
        if not endpoints:
            raise ConfigurationError(
                "The option 'webhdfs_endpoint' is empty.", fix="Leave it out, or name a URL."
            )
    elif place.scheme == "hdfs":
        # The URI's port is that of the RPC, which nobody speaks here.
        endpoints = (_of_host("http", host, str(_DEFAULT_PORTS["webhdfs"])),)
    else:
        protocol = "https" if place.scheme == "swebhdfs" else "http"
        endpoints = (_of_host(protocol, host, port or str(_DEFAULT_PORTS[place.scheme])),)
    return WebHdfsAddress(
        uri=str(place),
        root=f"/{place.path}" if place.path else "",
        endpoints=endpoints,
        user=options.get("user") or None,
        delegation_token=options.get("delegation_token") or None,
        timeout_seconds=_timeout(options.get("timeout_seconds")),
    )


def _place(uri: str) -> RemoteUri:
    place = parse_remote_uri(uri)
    if place.scheme not in WEBHDFS_SCHEMES:
        raise InvalidUriError(f"The scheme {place.scheme!r} is none of HDFS.", fix=_HINT)
    if "@" in place.authority:
        raise InvalidUriError(
            "The HDFS URI names a user before its host.",
            fix="Leave it out of the URI; give the option 'user' or 'delegation_token'.",
        )
    return place


def _of_host(protocol: str, host: str, port: str) -> str:
    """The base URL of the NameNode that the URI itself names."""
    url = f"{protocol}://{host}:{port}"
    try:
        require_service_address("webhdfs_endpoint", url)
    except ConfigurationError as error:
        raise InvalidUriError(
            "The HDFS URI names a host that is no service's address.", cause=error.cause, fix=_HINT
        ) from error
    return url


def _endpoint(text: str) -> str:
    """One NameNode's base URL; a gateway's may have a path before `/webhdfs/v1`."""
    try:
        parsed = urlsplit(text)
        host, port = parsed.hostname, parsed.port
    except ValueError:
        host, port, parsed = None, None, urlsplit("")
    if (
        parsed.scheme not in ("http", "https")
        or not host
        or "@" in parsed.netloc
        or "?" in text
        or "#" in text
    ):
        # What was given may hold a password, so it is not repeated.
        raise ConfigurationError(
            "The option 'webhdfs_endpoint' holds something other than URLs of NameNodes.",
            cause="Each is http or https with a host, and without user information, query or fragment.",
            fix="Write http://host:9870; several NameNodes of one HDFS are separated by commas.",
        )
    require_service_address("webhdfs_endpoint", text)
    shown = f"[{host}]" if ":" in host else host
    default = _DEFAULT_PORTS["swebhdfs" if parsed.scheme == "https" else "webhdfs"]
    return f"{parsed.scheme}://{shown}:{port or default}{parsed.path.rstrip('/').removesuffix('/webhdfs/v1')}"


def _timeout(text: str | None) -> float:
    if text is None:
        return DEFAULT_TIMEOUT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise ConfigurationError(
            f"The option 'timeout_seconds' is {text!r}.",
            cause="It is a number of seconds above 0 and at most a day.",
            fix="Write 60, for example.",
        )
    return seconds
