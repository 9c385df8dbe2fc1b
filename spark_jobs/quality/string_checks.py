"""Checks of strings that Python libraries define: JSON, free-form dates, strptime.

Each distinct string of a batch is checked once.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

import pyarrow as pa

from delta_core.errors import QualitySuiteError
from spark_jobs.quality.suite_values import InapplicableError

Check = Callable[[str], bool]


class StringKind(StrEnum):
    """The kind of a string check."""

    JSON = "json"
    JSON_SCHEMA = "json schema"
    DATE = "date"
    STRFTIME = "strftime"


@dataclass(frozen=True, slots=True)
class StringCheck:
    """A check of strings, as a value that can be sent to Spark's workers.

    Attributes:
        argument: the JSON schema as JSON, or the format.
    """

    kind: StringKind
    argument: str = ""

    def hold(self, strings: pa.Array) -> pa.Array:
        """Whether each string passes the check; null for a null string."""
        encoded = strings.dictionary_encode()
        check = _check(self)
        answers = pa.array([check(string) for string in encoded.dictionary.to_pylist()], pa.bool_())
        return answers.take(encoded.indices)


def json_schema_check(schema: object) -> StringCheck:
    """A check against a JSON schema.

    Raises:
        InapplicableError: the schema is not valid, or refers to another document, which is never fetched.
        QualitySuiteError: the package jsonschema is not installed.
    """
    _require("jsonschema")
    import jsonschema

    if not isinstance(schema, Mapping):
        raise InapplicableError("The argument `json_schema` is not an object.")
    external = [target for target in _references(schema) if not target.startswith("#")]
    if external:
        raise InapplicableError(f"The argument `json_schema` refers to another document, {external[0]!r}.")
    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InapplicableError(f"The argument `json_schema` is not valid: {error.message}.") from error
    return StringCheck(StringKind.JSON_SCHEMA, json.dumps(schema))


def date_check() -> StringCheck:
    """A check for free-form dates.

    Raises:
        QualitySuiteError: the package dateutil is not installed.
    """
    _require("dateutil")
    return StringCheck(StringKind.DATE)


def strftime_check(pattern: object) -> StringCheck:
    """A check against a format of `datetime.strptime`.

    Raises:
        InapplicableError: a time that is written with the format cannot be parsed with it.
    """
    if not isinstance(pattern, str):
        raise InapplicableError(f"The format must be a string, not {pattern!r}.")
    try:
        written = datetime.datetime(2024, 5, 1, 12, 30, tzinfo=datetime.UTC).strftime(pattern)
        datetime.datetime.strptime(written, pattern)
    except ValueError as error:
        raise InapplicableError(f"A time in the format {pattern!r} cannot be parsed: {error}.") from error
    return StringCheck(StringKind.STRFTIME, pattern)


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise QualitySuiteError(
            f"The package {package} is not installed.",
            cause="An expectation of the suite needs the package.",
            fix="Install deltaward[quality] where the job runs.",
        )


@lru_cache(maxsize=32)
def _check(check: StringCheck) -> Check:
    if check.kind is StringKind.JSON:
        return lambda string: _json(string) is not _NOT_JSON
    if check.kind is StringKind.DATE:
        return _is_date
    if check.kind is StringKind.STRFTIME:
        return lambda string: _has_format(string, check.argument)
    return _json_schema(json.loads(check.argument))


@dataclass(frozen=True)
class _NotJson:
    """A marker for a string that is not JSON. None represents JSON's null."""

    note: str = field(default="not JSON")


_NOT_JSON = _NotJson()


def _json(string: str) -> Any:
    try:
        return json.loads(string)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _json_schema(schema: Mapping[str, Any]) -> Check:
    import jsonschema

    validator = jsonschema.validators.validator_for(schema)(schema)

    def check(string: str) -> bool:
        document = _json(string)
        return document is not _NOT_JSON and bool(validator.is_valid(document))

    return check


def _is_date(string: str) -> bool:
    from dateutil.parser import parse

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parser warns about unknown time zones
        try:
            parse(string)
        except (ValueError, OverflowError):
            return False
    return True


def _has_format(string: str, pattern: str) -> bool:
    try:
        datetime.datetime.strptime(string, pattern)
    except ValueError:
        return False
    return True


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, (list, tuple)):
        for value in schema:
            yield from _references(value)
