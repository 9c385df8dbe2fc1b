"""Translation of connections of the types `wasb`, `adls` and `azure_data_lake` to storage options.

The identity is the first of these that the connection has: a connection string, a tenant with an application,
a key, a shared access signature, a managed identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from delta_airflow.hooks.connection_fields import (
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
    """The address of the blobs, from a connection.

    Attributes:
        account: the account's name, if the address contains one.
        endpoint: the address, if it is not that of the public cloud.
        is_name: whether the connection gives only the account's name.
    """

    account: str | None = None
    endpoint: str | None = None
    is_name: bool = False


def translate_wasb(given: GivenConnection) -> Translation:
    """The storage options for Azure from a Blob Storage connection.

    The host is an address. The login is an account, or an application if there is a tenant.

    Raises:
        ConfigurationError: a field has the wrong type.
    """
    login = given.field_string("login")
    return _translate(given, tenant_name="tenant_id", account=login, address=given.field_string("host"))


def translate_adls(given: GivenConnection) -> Translation:
    """The storage options for Azure from a Data Lake Storage Gen2 connection.

    The host is an account. The login is an application.

    Raises:
        ConfigurationError: a field has the wrong type.
    """
    host = given.field_string("host")
    return _translate(
        given, tenant_name="tenant_id", account=None, address=given.string("account_url") or host
    )


def translate_data_lake(given: GivenConnection) -> Translation:
    """The storage options for Azure from an old Data Lake connection, which has the account in its extra.

    Raises:
        ConfigurationError: a field has the wrong type.
    """
    return _translate(given, tenant_name="tenant", account=None, address=given.string("account_name"))


def _translate(
    given: GivenConnection, *, tenant_name: str, account: str | None, address: str | None
) -> Translation:
    translation = Translation()
    tenant = given.string(tenant_name)
    string = given.string("connection_string")
    sas = given.string("sas_token")
    place = _address(address)
    if account is not None and tenant is None and place.is_name:
        # Airflow's hook ignores a host that is not an address.
        place = _Address(account=account)
    if sas is not None and sas.lower().startswith("http"):
        url, _, sas = sas.partition("?")
        place = _address(url)
    name = place.account or given.string("account_name") or (account if tenant is None else None)
    if string is not None:
        name, place = _of_connection_string(given, string, translation)
    else:
        _identity(given, tenant, sas, translation)
    translation.give("azure_storage_account_name", name)
    translation.give("azure_storage_endpoint", place.endpoint)
    if is_plain_http(place.endpoint):
        translation.give("allow_http", "true")
    translation.give("proxy_url", proxy_of(given, place.endpoint))
    translation.refusals += given.unused(_HARMLESS, settled_by=IDENTITY)
    return translation


def _identity(given: GivenConnection, tenant: str | None, sas: str | None, translation: Translation) -> None:
    password, login = given.field_string("password"), given.field_string("login")
    names = ("shared_access_key", "account_key", "managed_identity_client_id", "workload_identity_tenant_id")
    extra = {name: given.string(name) for name in names}
    more = given.mapping("client_secret_auth_config")
    if tenant is not None:
        translation.give("azure_tenant_id", tenant)
        translation.give("azure_client_id", login)
        translation.give("azure_client_secret", password)
        authority = more.string("authority")
        if authority is not None:
            translation.give(
                "azure_authority_host", authority if "://" in authority else f"https://{authority}"
            )
        if not (login and password):
            translation.refusals.append(
                _refused(
                    given,
                    "tenant_id",
                    "A tenant needs an application as login and its secret as password.",
                )
            )
        translation.refusals += more.unused((), place="client_secret_auth_config.", settled_by=IDENTITY)
        return
    key = extra["shared_access_key"]
    if key is None and sas is None:
        key = password or extra["account_key"]
    if key is not None and "sig=" in key:
        key, sas = None, key
    if key is not None:
        translation.give("azure_storage_account_key", key)
    elif sas is not None:
        translation.give("azure_storage_sas_key", sas)
    else:
        # If neither is given, the client uses the identity of the machine, as Airflow's hooks do.
        translation.give("azure_client_id", extra["managed_identity_client_id"])
        translation.give("azure_tenant_id", extra["workload_identity_tenant_id"])


def _of_connection_string(
    given: GivenConnection, connection_string: str, translation: Translation
) -> tuple[str | None, _Address]:
    """The account and the address in a connection string. Its credentials are added to the options."""
    parts = {}
    for part in connection_string.split(";"):
        key, _, value = part.partition("=")
        parts[key.strip().lower()] = value.strip()
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        translation.refusals.append(
            _refused(given, "connection_string", "It refers to the emulator without its address and key.")
        )
    name = parts.get("accountname") or None
    protocol = parts.get("defaultendpointsprotocol") or "https"
    suffix = parts.get("endpointsuffix") or _PUBLIC
    if not parts.get("blobendpoint") and not name:
        translation.refusals.append(_refused(given, "connection_string", "It names no account."))
    given_address = parts.get("blobendpoint") or f"{protocol}://{name}.blob.{suffix}"
    address = _address(given_address)
    if parts.get("accountkey"):
        translation.give("azure_storage_account_key", parts["accountkey"])
    else:
        translation.give("azure_storage_sas_key", parts.get("sharedaccesssignature"))
    return name or address.account, address


def _address(given_address: str | None) -> _Address:
    """The address from an account's name, a host, or a URL.

    `https://account.blob.core.windows.net`, and the same host of Data Lake Storage, are in the public cloud,
    which needs no endpoint. A path is an account's name, as on servers that have several accounts on a host.
    """
    if given_address is None:
        return _Address()
    if "://" not in given_address:
        if "." not in given_address and ":" not in given_address and "/" not in given_address:
            return _Address(account=given_address, is_name=True)
        given_address = f"https://{given_address}"
    parts = urlsplit(given_address)
    host = (parts.hostname or "").lower()
    known = _HOST.fullmatch(host)
    if known is not None:
        account, cloud = known["account"], known["cloud"]
        elsewhere = cloud != _PUBLIC or parts.scheme.lower() == "http"
        # Commits use Put Blob, which the endpoint of Data Lake Storage does not support.
        return _Address(
            account=account,
            endpoint=f"{parts.scheme.lower()}://{account}.blob.{cloud}" if elsewhere else None,
        )
    below = parts.path.strip("/").split("/")[0]
    first = host.partition(".")[0]
    named = below or (first if "." in host and _ACCOUNT.fullmatch(first) and not first.isdigit() else "")
    return _Address(account=named or None, endpoint=given_address.rstrip("/"))


def _refused(given: GivenConnection, name: str, cause: str) -> Refusal:
    return given.refused(
        name,
        cause=cause,
        fix="Complete it, or give the credentials in storage_options of the deltaward connection.",
        settled_by=IDENTITY,
    )
