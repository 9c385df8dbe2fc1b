"""Parsing of rendered template fields: a template renders to a string, but job parameters have types."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from delta_airflow.hooks.settings import RunnerName
from delta_core.errors import ConfigurationError
from delta_core.storage import uri_scheme

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_ABSENT = frozenset({"", "none", "null"})


def as_string(name: str, value: object) -> str:
    """Check that the argument `name` is a string that is not empty, and return it.

    Raises:
        ConfigurationError: the value is empty or not a string.
    """
    if not isinstance(value, str) or not value.strip():
        raise _invalid(name, value, "a string that is not empty")
    return value.strip()


def as_optional_string(name: str, value: object) -> str | None:
    """Parse the argument `name` as a string, or as None for None, "" and a rendered None.

    Raises:
        ConfigurationError: the value is not a string.
    """
    return None if _absent(value) else as_string(name, value)


def as_optional_int(name: str, value: object, *, minimum: int) -> int | None:
    """Parse the argument `name` as a whole number of at least `minimum`, or None.

    Raises:
        ConfigurationError: the value is something else.
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
    """Parse the argument `name` as a number of at least `minimum`, or None.

    Raises:
        ConfigurationError: the value is something else.
    """
    if _absent(value):
        return None
    try:
        number = None if isinstance(value, bool) else float(str(value))
    except ValueError:
        number = None
    # The negated comparison refuses NaN, too.
    if number is None or not minimum <= number < float("inf"):
        raise _invalid(name, value, f"a number of at least {minimum:g}")
    return number


def as_bool(name: str, value: object) -> bool:
    """Parse the argument `name` as a boolean. An unclear value is an error, because `dry_run` is parsed here.

    Raises:
        ConfigurationError: the value is not a boolean.
    """
    flag = str(value).strip().lower()
    if flag in _TRUE:
        return True
    if flag in _FALSE:
        return False
    raise _invalid(name, value, "true or false")


def as_json_object(name: str, value: object) -> dict[str, Any]:
    """Parse the argument `name`, a mapping or a rendered mapping, as a mapping of JSON values.

    Raises:
        ConfigurationError: the value is not a mapping, or contains values that JSON cannot express.
    """
    try:
        loaded = _loaded(value) if isinstance(value, str) else value
        if isinstance(loaded, Mapping):
            copied: dict[str, Any] = json.loads(json.dumps(dict(loaded), allow_nan=False))
            return copied
    except (TypeError, ValueError) as error:
        raise _invalid(name, value, "an object of JSON values") from error
    raise _invalid(name, value, "an object of JSON values")


def as_json_objects(name: str, value: object) -> list[dict[str, Any]]:
    """Parse the argument `name`, a list or a rendered list, as mappings of JSON values. None gives none.

    Raises:
        ConfigurationError: the value is something else.
    """
    if _absent(value):
        return []
    try:
        loaded = _loaded(value) if isinstance(value, str) else value
    except ValueError as error:
        raise _invalid(name, value, "a list of objects of JSON values") from error
    if not isinstance(loaded, (list, tuple)):
        raise _invalid(name, value, "a list of objects of JSON values")
    return [as_json_object(f"{name}[{number}]", entry) for number, entry in enumerate(loaded)]


def as_strings(name: str, value: object) -> list[str]:
    """Check that the argument `name` is a list of strings, and return it. None gives an empty list.

    Raises:
        ConfigurationError: the value is something else.
    """
    if value is None:
        return []
    if isinstance(value, (list, tuple)) and all(isinstance(entry, str) and entry for entry in value):
        return list(value)
    raise _invalid(name, value, "a list of strings")


def as_rendered_strings(name: str, value: object) -> list[str]:
    """Parse the argument `name`, a list or a rendered list, as strings. None gives an empty list.

    Raises:
        ConfigurationError: the value is something else.
    """
    return as_strings(name, _listed(name, value))


def as_versions(name: str, value: object) -> list[int]:
    """Parse numbers, lists and rendered lists as ascending versions of a table, without duplicates.

    A job's summary counts as its commits, or as the earlier commit that already applied its work. None and a
    rendered None give no version, so that the result of a skipped task may be among the values.

    Raises:
        ConfigurationError: a value is something else.
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
    """Parse a mapping or JSON text as a mapping of strings. Numbers and booleans become strings.

    Raises:
        ConfigurationError: the value is something else.
    """
    entries = {} if _absent(value) else as_json_object(name, value)
    if any(entry is None or isinstance(entry, (dict, list)) for entry in entries.values()):
        raise _invalid(name, value, "an object whose values are strings")
    return {key: entry if isinstance(entry, str) else json.dumps(entry) for key, entry in entries.items()}


def as_location(name: str, value: object) -> str:
    """Check that a location is an absolute path or a URI, so that it is the same on every machine.

    Raises:
        ConfigurationError: the value is something else.
    """
    location = as_string(name, value)
    if uri_scheme(location) is None and not location.startswith("/"):
        raise _invalid(name, value, "an absolute path or a URI")
    return location


def as_locations(name: str, value: object) -> list[str]:
    """Parse a list or a rendered list as absolute paths and URIs.

    Raises:
        ConfigurationError: the value is something else.
    """
    return [as_location(name, entry) for entry in as_rendered_strings(name, value)]


def as_runner(name: str, value: object) -> RunnerName | None:
    """Parse the argument `name` as the name of a runner, or None.

    Raises:
        ConfigurationError: the runner does not exist.
    """
    runner = as_optional_string(name, value)
    try:
        return None if runner is None else RunnerName(runner)
    except ValueError as error:
        raise _invalid(name, value, f"one of {', '.join(RunnerName)}") from error


def _listed(name: str, value: object) -> object:
    """The list that a template has rendered to a string; any other value unchanged."""
    rendered = as_optional_string(name, value) if isinstance(value, str) else None
    if rendered is None:
        return None if isinstance(value, str) else value
    try:
        return _loaded(rendered)
    except ValueError:
        # Not a rendered list. The caller raises the error.
        return rendered


def _loaded(rendered: str) -> object:
    """The value that a template has rendered: the output of `tojson`, or without it Python's representation.

    Raises:
        ValueError: the string is neither.
    """
    try:
        return json.loads(rendered)
    except ValueError as error:
        try:
            return ast.literal_eval(rendered.strip())
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            raise error from None


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT)


def _invalid(name: str, value: object, expected: str) -> ConfigurationError:
    shown = repr(value)
    return ConfigurationError(
        f"The argument {name} is not valid after rendering.",
        cause=f"Its value is {shown[:200]}.",
        fix=f"Give {expected}.",
    )
