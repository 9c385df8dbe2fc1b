"""The address of a table on HDFS, from the URI and the options of a WebHDFS store."""

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
    """The location of a table, its NameNodes and the credentials.

    Attributes:
        uri: the canonical URI; see `delta_core.storage.remote_uri`.
        root: the table root's absolute HDFS path, decoded; `""` is the root of the file system.
        endpoints: base URLs of the NameNodes, in the order in which they are tried.
        user: the user of simple authentication (`user.name`).
        delegation_token: used in place of a Kerberos login; never printed.
        timeout_seconds: time limit of each step of a request: connecting, sending, waiting for bytes.
    """

    uri: str
    root: str
    endpoints: tuple[str, ...]
    user: str | None = None
    delegation_token: str | None = field(default=None, repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


def webhdfs_address(uri: str, options: Mapping[str, str]) -> WebHdfsAddress:
    """The address from a URI and the options of a store. Makes no request.

    Raises:
        InvalidUriError: the URI's scheme does not belong to HDFS, or the URI has no host, a host that cannot
            be a service, a user, a query or fragment, or a path with '..'.
        ConfigurationError: an option is unknown, or a value is not valid.
    """
    unknown = sorted(set(options) - set(WEBHDFS_OPTIONS))
    if unknown:
        raise ConfigurationError(
            f"A WebHDFS store has no option {', '.join(map(repr, unknown))}.",
            fix=f"Use only the options {', '.join(WEBHDFS_OPTIONS)}.",
        )
    parsed_uri = _parsed_uri(uri)
    host, _, port = parsed_uri.authority.partition(":")
    given = options.get("webhdfs_endpoint")
    if given is not None:
        endpoints = tuple(_endpoint(value.strip()) for value in given.split(",") if value.strip())
        if not endpoints:
            raise ConfigurationError(
                "The option 'webhdfs_endpoint' is empty.", fix="Leave out the option, or pass a URL."
            )
    elif parsed_uri.scheme == "hdfs":
        # The URI's port is the RPC port, which WebHDFS does not use.
        endpoints = (_host_url("http", host, str(_DEFAULT_PORTS["webhdfs"])),)
    else:
        protocol = "https" if parsed_uri.scheme == "swebhdfs" else "http"
        endpoints = (_host_url(protocol, host, port or str(_DEFAULT_PORTS[parsed_uri.scheme])),)
    return WebHdfsAddress(
        uri=str(parsed_uri),
        root=f"/{parsed_uri.path}" if parsed_uri.path else "",
        endpoints=endpoints,
        user=options.get("user") or None,
        delegation_token=options.get("delegation_token") or None,
        timeout_seconds=_timeout(options.get("timeout_seconds")),
    )


def _parsed_uri(uri: str) -> RemoteUri:
    parsed_uri = parse_remote_uri(uri)
    if parsed_uri.scheme not in WEBHDFS_SCHEMES:
        raise InvalidUriError(f"The scheme {parsed_uri.scheme!r} does not belong to HDFS.", fix=_HINT)
    if "@" in parsed_uri.authority:
        raise InvalidUriError(
            "The HDFS URI contains a user.",
            fix="Remove it from the URI, and pass the option 'user' or 'delegation_token'.",
        )
    return parsed_uri


def _host_url(protocol: str, host: str, port: str) -> str:
    """The base URL of the NameNode in the URI itself."""
    url = f"{protocol}://{host}:{port}"
    try:
        require_service_address("webhdfs_endpoint", url)
    except ConfigurationError as error:
        raise InvalidUriError(
            "The host of the HDFS URI is not the address of a service.", cause=error.cause, fix=_HINT
        ) from error
    return url


def _endpoint(value: str) -> str:
    """The base URL of one NameNode. The URL of a gateway may have a path before `/webhdfs/v1`."""
    try:
        parsed = urlsplit(value)
        host, port = parsed.hostname, parsed.port
    except ValueError:
        host, port, parsed = None, None, urlsplit("")
    if (
        parsed.scheme not in ("http", "https")
        or not host
        or "@" in parsed.netloc
        or "?" in value
        or "#" in value
    ):
        # The value may contain a password, so the message does not repeat it.
        raise ConfigurationError(
            "The option 'webhdfs_endpoint' contains something other than URLs of NameNodes.",
            cause="Each URL must be http or https with a host, without user information, query or fragment.",
            fix="Write http://host:9870. Separate several NameNodes of one HDFS by commas.",
        )
    require_service_address("webhdfs_endpoint", value)
    shown = f"[{host}]" if ":" in host else host
    default = _DEFAULT_PORTS["swebhdfs" if parsed.scheme == "https" else "webhdfs"]
    return f"{parsed.scheme}://{shown}:{port or default}{parsed.path.rstrip('/').removesuffix('/webhdfs/v1')}"


def _timeout(value: str | None) -> float:
    if value is None:
        return DEFAULT_TIMEOUT_SECONDS
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise ConfigurationError(
            f"The option 'timeout_seconds' cannot be {value!r}.",
            cause="The value must be a number of seconds above 0 and at most a day.",
            fix="Write 60, for example.",
        )
    return seconds
