"""Reading rendered template fields: a template gives text, a job's parameters have types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from delta_core.errors import ConfigurationError
from delta_core.storage.uri import uri_scheme

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_ABSENT = frozenset({"", "none", "null"})


def as_string(name: str, value: object) -> str:
    """A text that is not empty.

    Raises:
        ConfigurationError: it is empty or no text.
    """
    if not isinstance(value, str) or not value.strip():
        raise _invalid(name, value, "a text that is not empty")
    return value.strip()


def as_optional_string(name: str, value: object) -> str | None:
    """A text, or None for None, "", and what a template makes of None.

    Raises:
        ConfigurationError: it is no text.
    """
    return None if _absent(value) else as_string(name, value)


def as_optional_int(name: str, value: object, *, minimum: int) -> int | None:
    """A whole number of at least `minimum`, or None.

    Raises:
        ConfigurationError: it is something else.
    """
    if _absent(value):
        return None
    try:
        number = None if isinstance(value, (bool, float)) else int(str(value))
    except ValueError:
        number = None
    if number is None or number < minimum:
        raise _invalid(name, value, f"a whole number of at least {minimum}")
    return number


def as_optional_float(name: str, value: object, *, minimum: float) -> float | None:
    """A number of at least `minimum`, or None.

    Raises:
        ConfigurationError: it is something else.
    """
    if _absent(value):
        return None
    try:
        number = None if isinstance(value, bool) else float(str(value))
    except ValueError:
        number = None
    # The negation refuses NaN as well.
    if number is None or not minimum <= number < float("inf"):
        raise _invalid(name, value, f"a number of at least {minimum:g}")
    return number


def as_bool(name: str, value: object) -> bool:
    """True or False; never guessed, since `dry_run` is one of them.

    Raises:
        ConfigurationError: it is neither.
    """
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _invalid(name, value, "true or false")


def as_json_object(name: str, value: object) -> dict[str, Any]:
    """A mapping of JSON values, given as one or as JSON text.

    Raises:
        ConfigurationError: it is none, or holds what JSON cannot.
    """
    try:
        loaded = json.loads(value) if isinstance(value, str) else value
        if isinstance(loaded, Mapping):
            copied: dict[str, Any] = json.loads(json.dumps(dict(loaded), allow_nan=False))
            return copied
    except (TypeError, ValueError) as error:
        raise _invalid(name, value, "an object of JSON values") from error
    raise _invalid(name, value, "an object of JSON values")


def as_json_objects(name: str, value: object) -> list[dict[str, Any]]:
    """A list of mappings of JSON values, given as one or as JSON text; None gives an empty one.

    Raises:
        ConfigurationError: it is something else.
    """
    if _absent(value):
        return []
    try:
        loaded = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise _invalid(name, value, "a list of objects of JSON values") from error
    if not isinstance(loaded, (list, tuple)):
        raise _invalid(name, value, "a list of objects of JSON values")
    return [as_json_object(f"{name}[{number}]", entry) for number, entry in enumerate(loaded)]


def as_strings(name: str, value: object) -> list[str]:
    """A list of texts; None gives an empty one.

    Raises:
        ConfigurationError: it is something else.
    """
    if value is None:
        return []
    if isinstance(value, (list, tuple)) and all(isinstance(entry, str) and entry for entry in value):
        return list(value)
    raise _invalid(name, value, "a list of texts")


def as_rendered_strings(name: str, value: object) -> list[str]:
    """A list of strings, given as a list or as what a template renders; None gives an empty one.

    Raises:
        ConfigurationError: it is something else.
    """
    return as_strings(name, _listed(name, value))


def as_versions(name: str, value: object) -> list[int]:
    """Versions of a table, ascending, each once: numbers, lists of them, and what templates make of either.

    A job's summary stands for its commits, or for the commit that had done its work already. None and what a
    template makes of it give none, so that the result of a task that was skipped may be named among others.

    Raises:
        ConfigurationError: something else is among them.
    """
    if _absent(value):
        return []
    if isinstance(value, str):
        value = _listed(name, value)
    if isinstance(value, Mapping):
        by = value.get("applied_by")
        done = by.get("version") if isinstance(by, Mapping) else None
        return sorted({*as_versions(name, value.get("commits")), *as_versions(name, done)})
    if isinstance(value, (list, tuple)):
        return sorted({version for entry in value for version in as_versions(name, entry)})
    version = as_optional_int(name, value, minimum=0)
    return [] if version is None else [version]


def as_string_mapping(name: str, value: object) -> dict[str, str]:
    """A mapping of strings, given as a mapping or as JSON; numbers and booleans become strings.

    Raises:
        ConfigurationError: it is something else.
    """
    found = {} if _absent(value) else as_json_object(name, value)
    if any(entry is None or isinstance(entry, (dict, list)) for entry in found.values()):
        raise _invalid(name, value, "an object of strings")
    return {key: entry if isinstance(entry, str) else json.dumps(entry) for key, entry in found.items()}


def as_location(name: str, value: object) -> str:
    """An absolute path or a URI: the same place on every machine.

    Raises:
        ConfigurationError: it is something else.
    """
    text = as_string(name, value)
    if uri_scheme(text) is None and not text.startswith("/"):
        raise _invalid(name, value, "an absolute path or a URI")
    return text


def as_locations(name: str, value: object) -> list[str]:
    """A list of absolute paths and URIs, given as one or as what a template makes of one.

    Raises:
        ConfigurationError: it is something else.
    """
    return [as_location(name, entry) for entry in as_rendered_strings(name, value)]


def _listed(name: str, value: object) -> object:
    """A list that a template has rendered as a string, or the value as it is."""
    text = as_optional_string(name, value) if isinstance(value, str) else None
    if text is None:
        return None if isinstance(value, str) else value
    # What `tojson` makes, and what Python makes of a list where a template says no more.
    for spelled in (text, text.replace("'", '"')):
        try:
            return json.loads(spelled)
        except ValueError:
            continue
    # No rendered list; the caller says what is expected.
    return text


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT)


def _invalid(name: str, value: object, expected: str) -> ConfigurationError:
    shown = repr(value)
    return ConfigurationError(
        f"The argument {name} is not valid after rendering",
        cause=f"it is {shown[:200]}",
        fix=f"Give {expected}",
    )
