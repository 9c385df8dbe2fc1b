"""Checks of the addresses of stores.

A table's URI or an option may come from an attacker who wants requests to be sent to an address where a
cloud provides credentials. Names are not resolved here, and the clients follow redirects of reads. Only
addresses that are written down are refused, in every spelling that clients understand.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from urllib.parse import urlsplit

from delta_core.errors import ConfigurationError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Numbers as the system's functions parse them: parts may be missing, and octal or hexadecimal.
_NUMERIC = re.compile(r"[0-9a-fx.]+")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA_NETWORKS = (
    ipaddress.ip_network("fd00:ec2::/32"),  # Amazon
    ipaddress.ip_network("100.100.100.200/32"),  # Alibaba
    ipaddress.ip_network("168.63.129.16/32"),  # Azure
    ipaddress.ip_network("192.0.0.192/32"),  # Oracle
)
_METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)


def require_service_address(name: str, url: str) -> None:
    """Refuse an endpoint that is not the address of a service.

    Args:
        name: the name of the option, for the message.
        url: the value of the option.

    Raises:
        ConfigurationError: the URL is not http or https, has a password or a query, or has an address or a
            host name at which clouds provide credentials.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        plain = parts.scheme in ("http", "https") and bool(host) and parts.username is None
        plain = plain and not parts.query and not parts.fragment and parts.port != 0
    except ValueError:
        plain, host = False, ""
    if not plain:
        raise ConfigurationError(
            f"The storage option {name!r} is not the address of a service.",
            cause="The value is not http or https, has no host, or has a password, a query or a fragment.",
            fix="Pass an address such as https://storage.example.com:9000.",
        )
    if is_metadata_service(host):
        raise ConfigurationError(
            f"The storage option {name!r} has the address {host}, which cannot be a store.",
            cause="Clouds provide credentials at such addresses.",
            fix="Pass the address of the store.",
        )


def is_metadata_service(host: str) -> bool:
    """Whether a host name or address is known to provide credentials, or does not identify one machine."""
    host = _plain(host)
    address = _address(host)
    if address is None:
        return host in _METADATA_NAMES
    return (
        address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or any(address.version == network.version and address in network for network in _METADATA_NETWORKS)
    )


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = _plain(urlsplit(url).hostname or "")
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _plain(host: str) -> str:
    # Resolvers normalise full-width digits and ignore the dot at the end.
    return unicodedata.normalize("NFKC", host).lower().rstrip(".").strip("[]")


def _address(host: str) -> _Address | None:
    try:
        address: _Address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        if not _NUMERIC.fullmatch(host):
            return None
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
