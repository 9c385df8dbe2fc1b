"""Translation of a connection of the type `webhdfs` or `hdfs` to storage options."""

from __future__ import annotations

from airflow.sdk import conf

from delta_airflow.hooks.connection_fields import GivenConnection, Refusal, Translation
from delta_core.storage.store_options import FALSE

IDENTITY = frozenset({"user", "delegation_token"})

_HARMLESS = frozenset({"autoconfig"})

# Ports of the name node's RPC protocol, which connections of the type hdfs contain.
_RPC_PORTS = frozenset({"8020", "8022", "9000"})
_IDENTITY_FIELDS = ("cookies", "headers", "cert", "key")


def translate(given: GivenConnection) -> Translation:
    """Translate the connection to storage options for HDFS, which is accessed through WebHDFS.

    Raises:
        ConfigurationError: a field has the wrong type.
    """
    translation = Translation()
    secure = given.flag("use_ssl")
    translation.give("webhdfs_endpoint", _endpoints(given, secure=secure))
    translation.give("delegation_token", given.string("delegation_token"))
    user = given.string("proxy_user") or given.string("effective_user") or given.field_string("login")
    if "delegation_token" not in translation.options:
        translation.give("user", user)
        if conf.get("core", "security", fallback="") == "kerberos":
            translation.refusals.append(
                _identity(
                    given, "login", "Airflow's security is kerberos, which needs a token and not a login."
                )
            )
    if given.field_string("password"):
        translation.refusals.append(_identity(given, "password", "Requests to WebHDFS use no password."))
    for name in _IDENTITY_FIELDS:
        if given.take(name):
            translation.refusals.append(_identity(given, name, "Requests to WebHDFS do not use it."))
    verify = given.string("verify")
    if secure and verify is not None and verify.lower() not in ("true", "1"):
        switched_off = verify.lower() in FALSE
        translation.refusals.append(
            given.refused(
                "verify",
                cause="Deltaward always verifies certificates."
                if switched_off
                else "Deltaward verifies certificates against those that the machine trusts.",
                fix="Make the machine trust the server's certificate (SSL_CERT_FILE), and leave verify out.",
            )
        )
    translation.refusals += given.unused(_HARMLESS, settled_by=IDENTITY)
    return translation


def _endpoints(given: GivenConnection, *, secure: bool) -> str | None:
    """The addresses of the name nodes; None when the table's URI determines them."""
    hosts = [host.strip() for host in (given.field_string("host") or "").split(",") if host.strip()]
    port = given.field_string("port")
    if given.conn_type == "hdfs" and port in _RPC_PORTS:
        port = None
    # The path of a gateway, which comes before /webhdfs/v1.
    below = (given.field_string("schema") or "").strip("/")
    return ",".join(_endpoint(host, port, below, secure=secure) for host in hosts) or None


def _endpoint(host: str, port: str | None, below: str, *, secure: bool) -> str:
    address = host if "://" in host else f"{'https' if secure else 'http'}://{host}"
    behind = address.partition("://")[2].rpartition("]")[2]
    if port and ":" not in behind:
        address = f"{address.rstrip('/')}:{port}"
    return f"{address}/{below}" if below else address


def _identity(given: GivenConnection, name: str, cause: str) -> Refusal:
    return given.refused(
        name,
        cause=cause,
        fix='Give a "delegation_token", here or in storage_options, or give only the user as login.',
        settled_by=IDENTITY,
    )
