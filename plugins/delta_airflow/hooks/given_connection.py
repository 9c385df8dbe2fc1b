"""The fields of an Airflow connection of another provider, each taken once, so that what is left is known."""

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

_SPEAKS_OF_WHO_OR_WHERE = (
    *("account", "auth", "cert", "client", "credential", "domain", "endpoint", "host", "identity"),
    *("impersonat", "kerberos", "key", "login", "pass", "principal", "profile", "prox", "region", "role"),
    *("sas", "secret", "sign", "ssl", "tenant", "tls", "token", "url", "user", "verify"),
)

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----")

_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that a connection says and that no option of the store says.

    Attributes:
        settled_by: plain names of options; where the `deltaward` connection gives one of them itself, it does
            not matter what the other connection says.
    """

    error: ConfigurationError
    settled_by: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class Translation:
    """What became of a connection.

    Attributes:
        options: storage options, in the spelling with the service's prefix.
        refusals: what could not become one; the first that matters is raised.
    """

    options: dict[str, str] = field(default_factory=dict, repr=False)
    refusals: list[Refusal] = field(default_factory=list)

    def give(self, name: str, value: str | None) -> None:
        """Set an option, unless there is nothing to set it to."""
        if value:
            self.options[name] = value


@dataclass(slots=True, kw_only=True)
class GivenConnection:
    """One connection. Empty values count as not given; names may have the prefix `extra__TYPE__` of old.

    Attributes:
        fields: login, password, host, schema and port.
        extra: the extra that is not taken yet.
    """

    conn_id: str
    conn_type: str
    fields: Mapping[str, Any] = field(repr=False)
    extra: dict[str, Any] = field(repr=False)

    def field_string(self, name: str) -> str | None:
        """One of the connection's own fields."""
        value = self.fields.get(name)
        return None if value in (None, "") else str(value).strip() or None

    def take(self, name: str) -> Any:
        """A value of the extra, which is not there any more afterwards; None when it is not given."""
        old = self.extra.pop(f"extra__{self.conn_type}__{name}", None)
        value = self.extra.pop(name, old)
        return None if value in (None, "", [], {}) else value

    def string(self, name: str) -> str | None:
        """A value of the extra that is a string or a number.

        Raises:
            ConfigurationError: it is something else.
        """
        value = self.take(name)
        if value is None:
            return None
        text = value_string(value)
        if text is None:
            raise self.not_valid(name, "a string")
        return text.strip() or None

    def flag(self, name: str) -> bool:
        """A value of the extra that is true or false, also as a string; false when it is not given.

        Raises:
            ConfigurationError: it is neither.
        """
        text = (self.string(name) or "false").lower()
        if text not in _TRUE | FALSE:
            raise self.not_valid(name, "true or false")
        return text in _TRUE

    def mapping(self, name: str) -> GivenConnection:
        """A JSON object in the extra, also as a string, to be taken in the same way.

        Raises:
            ConfigurationError: it is something else.
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
        """The error for a value that a field cannot have; the value, which may be a secret, is not in it."""
        return ConfigurationError(
            f"{name!r} of the connection {self.conn_id} ({self.conn_type}) is not valid",
            fix=f"Set it to {expected}",
        )

    def refused(self, name: str, *, cause: str, fix: str, settled_by: Iterable[str] = ()) -> Refusal:
        """The refusal of a field that deltaward's stores cannot follow."""
        error = ConfigurationError(
            f"The connection {self.conn_id} ({self.conn_type}) sets {name!r}, which deltaward cannot follow",
            cause=cause,
            fix=fix,
        )
        return Refusal(error=error, settled_by=frozenset(settled_by))

    def left_over(
        self, harmless: Iterable[str], *, place: str = "", settled_by: Iterable[str] = ()
    ) -> list[Refusal]:
        """Refusals of fields that were not taken and whose names speak of identity or place.

        Args:
            harmless: names that are known to say neither.
            place: where in the connection these names stand, for the message.
            settled_by: as of `Refusal`.
        """
        known = frozenset(harmless)
        found = []
        for given, value in sorted(self.extra.items()):
            name = given.removeprefix(f"extra__{self.conn_type}__")
            is_set = value not in (None, "", False, [], {}) and str(value).lower() not in FALSE
            if name in known or not is_set or not _matters(name):
                continue
            found.append(
                self.refused(
                    f"{place}{name}",
                    cause="By its name it says who asks or where the store is, and no store takes it",
                    fix="Take it out of the connection, or use one for deltaward alone",
                    settled_by=settled_by,
                )
            )
        return found


def _matters(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in _SPEAKS_OF_WHO_OR_WHERE)


def certificates(given: GivenConnection, name: str, path: str) -> str:
    """The certificates in a file that a connection names, without what stands between them.

    Raises:
        ConfigurationError: it cannot be read where the task runs, or holds none.
    """
    cause = "It holds no certificate in PEM form"
    try:
        data = Path(path).expanduser().read_bytes()
    except (OSError, ValueError) as error:
        data, cause = b"", str(getattr(error, "strerror", None) or "It is no path")
    found = _CERTIFICATE.findall(data.replace(b"\r\n", b"\n"))
    if not found:
        raise ConfigurationError(
            f"{name!r} of the connection {given.conn_id} names a file that cannot be read",
            cause=cause,
            fix="Put the file with the certificates where tasks run, or correct its path",
        )
    return b"".join(block + b"\n" for block in found).decode("ascii")


def is_plain_http(url: str | None) -> bool:
    """Whether an address is asked without TLS."""
    return (url or "").lower().startswith("http://")


def proxy_of(given: GivenConnection, endpoint: str | None) -> str | None:
    """The proxy for requests to an endpoint, from the `proxies` of a connection: a mapping by scheme."""
    proxies = given.mapping("proxies")
    plain, secure = proxies.string("http"), proxies.string("https")
    return plain if is_plain_http(endpoint) else secure
