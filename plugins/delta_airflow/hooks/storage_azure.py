"""What becomes of the fields of connections of the types `wasb`, `adls` and `azure_data_lake`.

The first of these that a connection has says who asks: a connection string, a tenant with an application, a
key, a shared access signature, a managed identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from delta_airflow.hooks.given_connection import (
    GivenConnection,
    Refusal,
    Translation,
    is_plain_http,
    proxy_of,
)

IDENTITY = frozenset(
    {"account_key", "client_id", "client_secret", "tenant_id", "sas_key", "token", "msi_endpoint"}
    | {"object_id", "msi_resource_id", "federated_token_file", "use_azure_cli", "skip_signature"}
)

_PLACE = frozenset({"account_name", "endpoint"})
_HARMLESS = frozenset({"api_version"})
_PUBLIC = "core.windows.net"
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_HOST = re.compile(r"(?P<account>[a-z0-9-]+)\.(?:blob|dfs)\.(?P<cloud>core\.[a-z.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Address:
    """Where a connection says that blobs are.

    Attributes:
        account: the account's name, where the address has one.
        endpoint: an address other than that of the public cloud.
        is_name: whether it is an account's name alone.
    """

    account: str | None = None
    endpoint: str | None = None
    is_name: bool = False


def translate_wasb(given: GivenConnection) -> Translation:
    """Storage options of Azure, from Blob Storage's: the host is an address, the login an account.

    With a tenant the login is an application.

    Raises:
        ConfigurationError: a field is of the wrong kind.
    """
    login = given.field_string("login")
    return _translate(given, tenant_name="tenant_id", account=login, address=given.field_string("host"))


def translate_adls(given: GivenConnection) -> Translation:
    """Storage options of Azure, from Data Lake Storage Gen2's: the host is an account.

    The login is an application.

    Raises:
        ConfigurationError: a field is of the wrong kind.
    """
    host = given.field_string("host")
    return _translate(
        given, tenant_name="tenant_id", account=None, address=given.string("account_url") or host
    )


def translate_data_lake(given: GivenConnection) -> Translation:
    """Storage options of Azure, from the Data Lake's of old: the account is in the extra.

    Raises:
        ConfigurationError: a field is of the wrong kind.
    """
    return _translate(given, tenant_name="tenant", account=None, address=given.string("account_name"))


def _translate(
    given: GivenConnection, *, tenant_name: str, account: str | None, address: str | None
) -> Translation:
    found = Translation()
    tenant = given.string(tenant_name)
    string = given.string("connection_string")
    sas = given.string("sas_token")
    place = _address(address)
    if account is not None and tenant is None and place.is_name:
        # Airflow's hook reads a host that is no address as none.
        place = _Address(account=account)
    if sas is not None and sas.lower().startswith("http"):
        url, _, sas = sas.partition("?")
        place = _address(url)
    name = place.account or given.string("account_name") or (account if tenant is None else None)
    if string is not None:
        name, place = _of_connection_string(given, string, found)
    else:
        _identity(given, tenant, sas, found)
    found.give("azure_storage_account_name", name)
    found.give("azure_storage_endpoint", place.endpoint)
    if is_plain_http(place.endpoint):
        found.give("allow_http", "true")
    found.give("proxy_url", proxy_of(given, place.endpoint))
    found.refusals += given.left_over(_HARMLESS, settled_by=IDENTITY)
    return found


def _identity(given: GivenConnection, tenant: str | None, sas: str | None, found: Translation) -> None:
    password, login = given.field_string("password"), given.field_string("login")
    names = ("shared_access_key", "account_key", "managed_identity_client_id", "workload_identity_tenant_id")
    extra = {name: given.string(name) for name in names}
    more = given.mapping("client_secret_auth_config")
    if tenant is not None:
        found.give("azure_tenant_id", tenant)
        found.give("azure_client_id", login)
        found.give("azure_client_secret", password)
        authority = more.string("authority")
        if authority is not None:
            found.give("azure_authority_host", authority if "://" in authority else f"https://{authority}")
        if not (login and password):
            found.refusals.append(
                _refused(
                    given,
                    "tenant_id",
                    "A tenant goes with an application as login and its secret as password",
                )
            )
        found.refusals += more.left_over((), place="client_secret_auth_config.", settled_by=IDENTITY)
        return
    key = extra["shared_access_key"]
    if key is None and sas is None:
        key = password or extra["account_key"]
    if key is not None and "sig=" in key:
        key, sas = None, key
    if key is not None:
        found.give("azure_storage_account_key", key)
    elif sas is not None:
        found.give("azure_storage_sas_key", sas)
    else:
        # Where neither is named, the client finds what the machine offers, as Airflow's hooks do.
        found.give("azure_client_id", extra["managed_identity_client_id"])
        found.give("azure_tenant_id", extra["workload_identity_tenant_id"])


def _of_connection_string(
    given: GivenConnection, text: str, found: Translation
) -> tuple[str | None, _Address]:
    """Account and address of a connection string; its credentials go into the options."""
    parts = {}
    for part in text.split(";"):
        key, _, value = part.partition("=")
        parts[key.strip().lower()] = value.strip()
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        found.refusals.append(
            _refused(given, "connection_string", "It names the emulator without its address and key")
        )
    name = parts.get("accountname") or None
    protocol = parts.get("defaultendpointsprotocol") or "https"
    suffix = parts.get("endpointsuffix") or _PUBLIC
    if not parts.get("blobendpoint") and not name:
        found.refusals.append(_refused(given, "connection_string", "It names no account"))
    given_address = parts.get("blobendpoint") or f"{protocol}://{name}.blob.{suffix}"
    address = _address(given_address)
    if parts.get("accountkey"):
        found.give("azure_storage_account_key", parts["accountkey"])
    else:
        found.give("azure_storage_sas_key", parts.get("sharedaccesssignature"))
    return name or address.account, address


def _address(text: str | None) -> _Address:
    """What an account's name, a host, or a URL says.

    `https://account.blob.core.windows.net` and its sibling of Data Lake Storage are the public cloud's, which
    needs no address. A path is an account's name, as servers on one host have it.
    """
    if text is None:
        return _Address()
    if "://" not in text:
        if "." not in text and ":" not in text and "/" not in text:
            return _Address(account=text, is_name=True)
        text = f"https://{text}"
    parts = urlsplit(text)
    host = (parts.hostname or "").lower()
    known = _HOST.fullmatch(host)
    if known is not None:
        account, cloud = known["account"], known["cloud"]
        elsewhere = cloud != _PUBLIC or parts.scheme.lower() == "http"
        # Commits are blobs' Put Blob, which the address of Data Lake Storage does not know.
        return _Address(
            account=account,
            endpoint=f"{parts.scheme.lower()}://{account}.blob.{cloud}" if elsewhere else None,
        )
    below = parts.path.strip("/").split("/")[0]
    first = host.partition(".")[0]
    named = below or (first if "." in host and _ACCOUNT.fullmatch(first) and not first.isdigit() else "")
    return _Address(account=named or None, endpoint=text.rstrip("/"))


def _refused(given: GivenConnection, name: str, cause: str) -> Refusal:
    return given.refused(
        name,
        cause=cause,
        fix="Complete the connection, or give the credentials as storage_options of the deltaward connection",
        settled_by=IDENTITY,
    )
