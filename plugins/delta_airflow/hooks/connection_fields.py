"""The fields of another provider's Airflow connection. Each is taken once, so unused fields remain."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delta_core.errors import ConfigurationError
from delta_core.plain_values import value_string
from delta_core.storage.store_options import FALSE

_WORDS_OF_IDENTITY_OR_ADDRESS = (
    *("account", "auth", "cert", "client", "credential", "domain", "endpoint", "host", "identity"),
    *("impersonat", "kerberos", "key", "login", "pass", "principal", "profile", "prox", "region", "role"),
    *("sas", "secret", "sign", "ssl", "tenant", "tls", "token", "url", "user", "verify"),
)

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----")

_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A field of a connection that no storage option can express.

    Attributes:
        settled_by: plain names of options. If the `deltaward` connection sets one of them, the field is
            irrelevant.
    """

    error: ConfigurationError
    settled_by: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class Translation:
    """The storage options that a connection translates to.

    Attributes:
        options: storage options, spelled with the prefix of the service.
        refusals: fields that could not be translated. The error of the first relevant one is raised.
    """

    options: dict[str, str] = field(default_factory=dict, repr=False)
    refusals: list[Refusal] = field(default_factory=list)

    def give(self, name: str, value: str | None) -> None:
        """Set an option, unless the value is empty."""
        if value:
            self.options[name] = value


@dataclass(slots=True, kw_only=True)
class GivenConnection:
    """The fields and the extra of one Airflow connection.

    Empty values count as not given. Names in the extra may have the old prefix `extra__TYPE__`.

    Attributes:
        fields: login, password, host, schema and port.
        extra: the entries of the extra that are not consumed yet.
    """

    conn_id: str
    conn_type: str
    fields: Mapping[str, Any] = field(repr=False)
    extra: dict[str, Any] = field(repr=False)

    def field_string(self, name: str) -> str | None:
        """The value of one of `fields`, such as `login`; None when it is empty."""
        value = self.fields.get(name)
        return None if value in (None, "") else str(value).strip() or None

    def take(self, name: str) -> Any:
        """Remove and return a value of the extra; None when it is not given."""
        old = self.extra.pop(f"extra__{self.conn_type}__{name}", None)
        value = self.extra.pop(name, old)
        return None if value in (None, "", [], {}) else value

    def string(self, name: str) -> str | None:
        """Take a value of the extra that is a string or a number.

        Raises:
            ConfigurationError: the value is something else.
        """
        value = self.take(name)
        if value is None:
            return None
        string = value_string(value)
        if string is None:
            raise self.not_valid(name, "a string")
        return string.strip() or None

    def flag(self, name: str) -> bool:
        """Take a boolean of the extra, possibly given as a string; False when it is not given.

        Raises:
            ConfigurationError: the value is not a boolean.
        """
        flag = (self.string(name) or "false").lower()
        if flag not in _TRUE | FALSE:
            raise self.not_valid(name, "true or false")
        return flag in _TRUE

    def mapping(self, name: str) -> GivenConnection:
        """Take a JSON object of the extra, possibly given as a string. Its entries are taken in the same way.

        Raises:
            ConfigurationError: the value is something else.
        """
        value = self.take(name)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise self.not_valid(name, "a JSON object") from None
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.not_valid(name, "a JSON object")
        return GivenConnection(conn_id=self.conn_id, conn_type=self.conn_type, fields={}, extra=dict(value))

    def not_valid(self, name: str, expected: str) -> ConfigurationError:
        """The error for an invalid value of a field. It omits the value, which may be a secret."""
        return ConfigurationError(
            f"{name!r} of the connection {self.conn_id} ({self.conn_type}) is not valid.",
            fix=f"Set it to {expected}.",
        )

    def refused(self, name: str, *, cause: str, fix: str, settled_by: Iterable[str] = ()) -> Refusal:
        """The refusal of a field that deltaward's stores do not support."""
        error = ConfigurationError(
            f"The connection {self.conn_id} ({self.conn_type}) sets {name!r}, "
            "which deltaward does not support.",
            cause=cause,
            fix=fix,
        )
        return Refusal(error=error, settled_by=frozenset(settled_by))

    def unused(
        self, harmless: Iterable[str], *, place: str = "", settled_by: Iterable[str] = ()
    ) -> list[Refusal]:
        """The refusals of entries that remain in the extra and whose names suggest an identity or an address.

        Args:
            harmless: names that suggest one of these, but concern neither.
            place: the position of these names within the connection, for the message.
            settled_by: see `Refusal`.
        """
        known = frozenset(harmless)
        refusals = []
        for given, value in sorted(self.extra.items()):
            name = given.removeprefix(f"extra__{self.conn_type}__")
            is_set = value not in (None, "", False, [], {}) and str(value).lower() not in FALSE
            if name in known or not is_set or not _is_relevant(name):
                continue
            refusals.append(
                self.refused(
                    f"{place}{name}",
                    cause="Its name suggests an identity or the address of the store, and no storage option "
                    "corresponds to it.",
                    fix="Remove it from the connection, or use a separate connection for deltaward.",
                    settled_by=settled_by,
                )
            )
        return refusals


def _is_relevant(name: str) -> bool:
    """Whether a name suggests that the field concerns the identity or the address."""
    lowered = name.lower()
    return any(word in lowered for word in _WORDS_OF_IDENTITY_OR_ADDRESS)


def certificates(given: GivenConnection, name: str, path: str) -> str:
    """The certificates in a file that a connection refers to, without any other content.

    Raises:
        ConfigurationError: the file cannot be read on the worker, or contains no certificate.
    """
    cause = "It contains no certificate in PEM format"
    try:
        data = Path(path).expanduser().read_bytes()
    except (OSError, ValueError) as error:
        data, cause = b"", str(getattr(error, "strerror", None) or "It is not a path")
    blocks = _CERTIFICATE.findall(data.replace(b"\r\n", b"\n"))
    if not blocks:
        raise ConfigurationError(
            f"No certificates can be read from the file in {name!r} of the connection {given.conn_id}.",
            cause=cause,
            fix="Put the file with the certificates on the workers, or correct its path.",
        )
    return b"".join(block + b"\n" for block in blocks).decode("ascii")


def is_plain_http(url: str | None) -> bool:
    """Whether a URL is accessed without TLS."""
    return (url or "").lower().startswith("http://")


def proxy_of(given: GivenConnection, endpoint: str | None) -> str | None:
    """The proxy for requests to an endpoint, from a connection's `proxies`, which is a mapping by scheme."""
    proxies = given.mapping("proxies")
    plain, secure = proxies.string("http"), proxies.string("https")
    return plain if is_plain_http(endpoint) else secure
