"""The options of remote stores: an allow-list per service, in the spellings that users know.

`aws_access_key_id`, `AWS_ACCESS_KEY_ID` and `access_key_id` are one option, as for obstore and for the
`deltalake` package. An unknown option is refused, so that a misspelt option is not silently ignored and no
option turns off what commits rely on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from delta_core.errors import ConfigurationError
from delta_core.plain_values import value_string
from delta_core.storage.log_store import has_control_characters

CLIENT_OPTIONS = frozenset(
    {"allow_http", "connect_timeout", "timeout", "proxy_url", "root_certificate", "user_agent"}
)
"""Options of the HTTP client, the same for every service."""

FALSE = frozenset({"0", "false", "no", "off"})
"""The spellings of false."""

_TRUE = frozenset({"1", "true", "yes", "on"})
_FLAGS = frozenset(
    {"allow_http", "skip_signature", "unsigned_payload", "virtual_hosted_style_request", "request_payer"}
    | {"use_azure_cli", "use_fabric_endpoint", "s3_express", "sse_bucket_key_enabled", "disable_tagging"}
    | {"imdsv1_fallback", "disable_bulk_delete"}
)
# Certificates and keys have several lines.
_MULTILINE = frozenset({"root_certificate", "service_account_key"})
_SECONDS = {
    **dict.fromkeys(("ms", "msec", "millis"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
}
_DURATION = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)\s*([a-z]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Checked options. Their values are not part of the representation.

    Attributes:
        service: options of the service, as the client's configuration takes them.
        client: options of the HTTP client.
        own: options of this library.
    """

    service: Mapping[str, str | bool] = field(repr=False)
    client: Mapping[str, str | bool | timedelta] = field(repr=False)
    own: Mapping[str, str] = field(repr=False)


def checked_options(
    options: Mapping[str, str],
    *,
    prefixes: tuple[str, ...],
    allowed: frozenset[str],
    aliases: Mapping[str, str] | None = None,
    own: frozenset[str] = frozenset(),
) -> StoreOptions:
    """Check options and sort them by recipient.

    Args:
        options: the options as the user wrote them.
        prefixes: optional prefixes of a name, such as `aws_`.
        allowed: the options of the service's client.
        aliases: alternative names of options.
        own: the options that this library's store takes itself.

    Raises:
        ConfigurationError: a name is unknown, a flag is neither true nor false, a name is given twice with
            different values, a value contains control characters, also in the environment, or an endpoint is
            not the address of a service. The message never contains a value.
    """
    service: dict[str, str | bool] = {}
    client: dict[str, str | bool | timedelta] = {}
    own_options: dict[str, str] = {}
    seen: dict[str, str] = {}
    for given, value in options.items():
        name = plain_name(given, prefixes, allowed | own | CLIENT_OPTIONS, aliases or {})
        if name is None:
            known = ", ".join(sorted(allowed | own | CLIENT_OPTIONS))
            raise ConfigurationError(
                f"The storage option {given!r} is unknown.",
                cause=f"Known options are: {known}.",
                fix="Remove the option. docs/stores.md describes the known options.",
            )
        if not isinstance(value, str):
            raise ConfigurationError(f"The storage option {given!r} is not a string.", fix="Pass a string.")
        if seen.setdefault(name, value) != value:
            raise ConfigurationError(
                f"The storage option {name!r} is given twice, with different values.", fix="Pass it once."
            )
        _require_one_line(f"The storage option {given!r}", name, value)
        if name in own:
            own_options[name] = value
        elif name in CLIENT_OPTIONS:
            client[name] = _flag(name, value) if name in _FLAGS else value
        else:
            service[name] = _flag(name, value) if name in _FLAGS else value
    _check_environment(prefixes, allowed - seen.keys(), aliases or {})
    return StoreOptions(service=service, client=client, own=own_options)


def option_strings(options: Mapping[str, object] | None) -> dict[str, str]:
    """Storage options as strings, from the values of a Python program: booleans, numbers, NumPy scalars.

    Raises:
        ConfigurationError: the options are not a mapping, a name is not a string, or a value is not a string,
            a number or a boolean. The message never contains a value.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigurationError(
            f"The storage options cannot be of type {type(options).__name__}.",
            cause="Storage options must be a mapping.",
            fix="Pass a mapping from names to strings.",
        )
    strings: dict[str, str] = {}
    for name, value in options.items():
        string = value_string(value)
        if not isinstance(name, str):
            raise ConfigurationError(
                f"The name of a storage option cannot be of type {type(name).__name__}.", fix="Pass a string."
            )
        if string is None:
            raise ConfigurationError(
                f"The storage option {name!r} cannot be of type {type(value).__name__}.",
                cause="Values are strings, numbers, True or False.",
                fix="Pass one of these, or leave out the option.",
            )
        strings[name] = string
    return strings


def seconds_of(duration: object, default: float) -> float:
    """A duration in the HTTP client's format, such as `1m 30s`, in seconds.

    The default without a duration, or when its unit is unknown.
    """
    parts = _DURATION.findall(duration) if isinstance(duration, str) else []
    if not parts or any(unit not in _SECONDS for _, unit in parts):
        return default
    return sum(float(count) * _SECONDS[unit] for count, unit in parts)


def environment_value(prefix: str, names: Sequence[str]) -> str | None:
    """A value from the environment, as the client reads it: the first of some names that has a value.

    Args:
        prefix: the prefix of the variables, in upper case.
        names: the names after the prefix, in lower case; variables may use either case.
    """
    variables = {
        key.removeprefix(prefix).lower(): value for key, value in os.environ.items() if key.startswith(prefix)
    }
    return next((variables[name] for name in names if variables.get(name)), None)


def plain_name(
    given: str, prefixes: tuple[str, ...], known: frozenset[str], aliases: Mapping[str, str]
) -> str | None:
    """The canonical name of an option in any spelling; None when it is unknown."""
    name = str(given).lower()
    for candidate in (name, *(name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix))):
        candidate = aliases.get(candidate, candidate)
        if candidate in known:
            return candidate
    return None


def _require_one_line(what: str, name: str, value: str) -> None:
    if name not in _MULTILINE and has_control_characters(value):
        # The client uses values in headers, and panics when a header is not valid.
        raise ConfigurationError(
            f"{what} contains a control character.",
            cause="A line break at the end of a value, as from a file that was read whole, is one.",
            fix="Remove it from the value.",
        )


def _check_environment(prefixes: tuple[str, ...], names: frozenset[str], aliases: Mapping[str, str]) -> None:
    """The same check for variables that the client reads when no option overrides them."""
    upper = tuple(prefix.upper() for prefix in prefixes)
    for key, value in os.environ.items():
        if key.startswith(upper):
            name = plain_name(key, prefixes, names, aliases)
            if name is not None:
                _require_one_line(f"The environment variable {key!r}", name, value)


def _flag(name: str, value: str) -> bool:
    if value.lower() in _TRUE:
        return True
    if value.lower() in FALSE:
        return False
    raise ConfigurationError(
        f"The storage option {name!r} is neither true nor false.", fix="Write true or false."
    )
