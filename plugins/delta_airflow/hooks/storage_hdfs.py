"""What becomes of the fields of a connection of the type `webhdfs` or `hdfs`."""

from __future__ import annotations

from airflow.sdk import conf

from delta_airflow.hooks.given_connection import GivenConnection, Refusal, Translation
from delta_core.storage.store_options import FALSE

IDENTITY = frozenset({"user", "delegation_token"})

_HARMLESS = frozenset({"autoconfig"})

# Of the name node's own protocol: what connections of the type hdfs name.
_RPC_PORTS = frozenset({"8020", "8022", "9000"})
_WHO = ("cookies", "headers", "cert", "key")


def translate(given: GivenConnection) -> Translation:
    """Storage options of HDFS, which is asked through WebHDFS.

    Raises:
        ConfigurationError: a field is of the wrong kind.
    """
    found = Translation()
    secure = given.flag("use_ssl")
    found.give("webhdfs_endpoint", _endpoints(given, secure=secure))
    found.give("delegation_token", given.string("delegation_token"))
    user = given.string("proxy_user") or given.string("effective_user") or given.field_string("login")
    if "delegation_token" not in found.options:
        found.give("user", user)
        if conf.get("core", "security", fallback="") == "kerberos":
            found.refusals.append(
                _identity(given, "login", "Airflow's security is kerberos, where a token stands for a login")
            )
    if given.field_string("password"):
        found.refusals.append(_identity(given, "password", "WebHDFS is asked without one"))
    for name in _WHO:
        if given.take(name):
            found.refusals.append(_identity(given, name, "Requests are made without it"))
    verify = given.string("verify")
    if secure and verify is not None and verify.lower() not in ("true", "1"):
        switched_off = verify.lower() in FALSE
        found.refusals.append(
            given.refused(
                "verify",
                cause="Certificates are checked always"
                if switched_off
                else "Certificates are checked against those that the machine trusts",
                fix="Have the machine trust the server's certificate (SSL_CERT_FILE), and leave it out",
            )
        )
    found.refusals += given.left_over(_HARMLESS, settled_by=IDENTITY)
    return found


def _endpoints(given: GivenConnection, *, secure: bool) -> str | None:
    """The addresses of the name nodes; None leaves it to the table's URI."""
    hosts = [host.strip() for host in (given.field_string("host") or "").split(",") if host.strip()]
    port = given.field_string("port")
    if given.conn_type == "hdfs" and port in _RPC_PORTS:
        port = None
    # A gateway's path in front of /webhdfs/v1.
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
        fix='Give a "delegation_token", here or in storage_options, or name the user as login alone',
        settled_by=IDENTITY,
    )
