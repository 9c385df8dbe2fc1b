"""The options of remote stores: an allow-list by service, in the spellings that users know.

`aws_access_key_id`, `AWS_ACCESS_KEY_ID` and `access_key_id` are one option, as they are for obstore and for
the `deltalake` package. What is not listed is refused, so that a misspelt option is not silently without
effect, and no option turns off what commits rely on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from delta_core.errors import ConfigurationError
from delta_core.plain_values import value_string
from delta_core.storage.store_path import has_control_characters

CLIENT_OPTIONS = frozenset(
    {"allow_http", "connect_timeout", "timeout", "proxy_url", "root_certificate", "user_agent"}
)
"""Options of the HTTP client, the same for every service."""

FALSE = frozenset({"0", "false", "no", "off"})
"""How a flag is written that is off."""

_TRUE = frozenset({"1", "true", "yes", "on"})
_FLAGS = frozenset(
    {"allow_http", "skip_signature", "unsigned_payload", "virtual_hosted_style_request", "request_payer"}
    | {"use_azure_cli", "use_fabric_endpoint", "s3_express", "sse_bucket_key_enabled", "disable_tagging"}
    | {"imdsv1_fallback", "disable_bulk_delete"}
)
# Certificates and keys are texts of several lines.
_SEVERAL_LINES = frozenset({"root_certificate", "service_account_key"})
_SECONDS = {
    **dict.fromkeys(("ms", "msec", "millis"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
}
_DURATION = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)\s*([a-z]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Checked options; the values do not show in a representation.

    Attributes:
        service: as the client's configuration takes them.
        client: of the HTTP client.
        own: of ours.
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
    """Sort options by who they are for.

    Args:
        options: as users write them.
        prefixes: what may stand in front of a name, such as `aws_`.
        allowed: names that the service's client takes.
        aliases: other names of them.
        own: names that our store takes itself.

    Raises:
        ConfigurationError: a name is not known, a flag is neither true nor false, a name is given twice with
            different values, a value, also one that the client reads from the environment, holds control
            characters, or an endpoint is no address of a service. Values are never repeated.
    """
    service: dict[str, str | bool] = {}
    client: dict[str, str | bool | timedelta] = {}
    ours: dict[str, str] = {}
    seen: dict[str, str] = {}
    for given, value in options.items():
        name = plain_name(given, prefixes, allowed | own | CLIENT_OPTIONS, aliases or {})
        if name is None:
            known = ", ".join(sorted(allowed | own | CLIENT_OPTIONS))
            raise ConfigurationError(
                f"The storage option {given!r} is not known.",
                cause=f"Known are: {known}.",
                fix="Leave it out; docs/stores.md says what each of the others is.",
            )
        if not isinstance(value, str):
            raise ConfigurationError(f"The storage option {given!r} is no text.", fix="Pass texts.")
        if seen.setdefault(name, value) != value:
            raise ConfigurationError(
                f"The storage option {name!r} is given twice, with different values.", fix="Give it once."
            )
        _require_one_line(f"The storage option {given!r}", name, value)
        if name in own:
            ours[name] = value
        elif name in CLIENT_OPTIONS:
            client[name] = _flag(name, value) if name in _FLAGS else value
        else:
            service[name] = _flag(name, value) if name in _FLAGS else value
    _require_sound_environment(prefixes, allowed - seen.keys(), aliases or {})
    return StoreOptions(service=service, client=client, own=ours)


def option_strings(options: Mapping[str, object] | None) -> dict[str, str]:
    """Storage options as texts, from what a Python program writes: True and False, numbers, NumPy's too.

    Raises:
        ConfigurationError: they are no mapping, a name is no text, or a value is nothing of these. Values are
            never repeated.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigurationError(
            f"The storage options are of the type {type(options).__name__}.",
            cause="Options go by their names.",
            fix="Pass a mapping from names to texts.",
        )
    found: dict[str, str] = {}
    for name, value in options.items():
        text = value_string(value)
        if not isinstance(name, str):
            raise ConfigurationError(
                f"The name of a storage option is of the type {type(name).__name__}.", fix="Pass a text."
            )
        if text is None:
            raise ConfigurationError(
                f"The storage option {name!r} is of the type {type(value).__name__}.",
                cause="Options are texts, numbers, True or False.",
                fix="Pass one of these, or leave the option out.",
            )
        found[name] = text
    return found


def seconds_of(duration: object, default: float) -> float:
    """A duration as the HTTP client takes it, such as `1m 30s`, for a client that takes seconds.

    The default where there is none, or one in units that no request waits for.
    """
    parts = _DURATION.findall(duration) if isinstance(duration, str) else []
    if not parts or any(unit not in _SECONDS for _, unit in parts):
        return default
    return sum(float(count) * _SECONDS[unit] for count, unit in parts)


def environment_value(prefix: str, names: Sequence[str]) -> str | None:
    """What the environment says, as the client reads it: the first of some names that has a value.

    Args:
        prefix: of the variables, in upper case.
        names: what follows the prefix, in lower case; variables write it in either.
    """
    found = {
        key.removeprefix(prefix).lower(): value for key, value in os.environ.items() if key.startswith(prefix)
    }
    return next((found[name] for name in names if found.get(name)), None)


def plain_name(
    given: str, prefixes: tuple[str, ...], known: frozenset[str], aliases: Mapping[str, str]
) -> str | None:
    """The option that a spelling means; None where it is none of the known ones."""
    name = str(given).lower()
    for candidate in (name, *(name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix))):
        candidate = aliases.get(candidate, candidate)
        if candidate in known:
            return candidate
    return None


def _require_one_line(what: str, name: str, value: str) -> None:
    if name not in _SEVERAL_LINES and has_control_characters(value):
        # The client makes headers of them, and a header that is none ends the process's call in a panic.
        raise ConfigurationError(
            f"{what} holds a control character.",
            cause="A line's end at the end of a value is one; a file that was read whole has it.",
            fix="Take it out of the value.",
        )


def _require_sound_environment(
    prefixes: tuple[str, ...], names: frozenset[str], aliases: Mapping[str, str]
) -> None:
    """The same for what the client takes from the environment where no option says otherwise."""
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
