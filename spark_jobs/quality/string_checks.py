"""Checks of texts that only Python's libraries define: JSON, dates in free form, strptime.

Each distinct text of a batch is looked at once.
"""

from __future__ import annotations

import datetime
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

import pyarrow as pa

from spark_jobs.quality.suite_values import MisfitError

Check = Callable[[str], bool]


class StringKind(StrEnum):
    """What a text must be."""

    JSON = "json"
    JSON_SCHEMA = "json schema"
    DATE = "date"
    STRFTIME = "strftime"


@dataclass(frozen=True, slots=True)
class StringCheck:
    """What texts must be, as a value that travels to Spark's workers.

    Attributes:
        argument: the JSON schema as JSON, or the format.
    """

    kind: StringKind
    argument: str = ""

    def hold(self, strings: pa.Array) -> pa.Array:
        """Where the texts pass; null where they are null."""
        encoded = strings.dictionary_encode()
        check = _check(self)
        answers = pa.array([check(text) for text in encoded.dictionary.to_pylist()], pa.bool_())
        return answers.take(encoded.indices)


def json_schema_check(schema: object) -> StringCheck:
    """A check against a JSON schema.

    Raises:
        MisfitError: it is none, or refers to another document: nothing is fetched to judge a row.
    """
    import jsonschema

    if not isinstance(schema, Mapping):
        raise MisfitError("json_schema is no object")
    away = [target for target in _references(schema) if not target.startswith("#")]
    if away:
        raise MisfitError(f"its json_schema refers to another document, {away[0]!r}")
    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        raise MisfitError(f"its json_schema is none: {error.message}") from error
    return StringCheck(StringKind.JSON_SCHEMA, json.dumps(schema))


def strftime_check(pattern: object) -> StringCheck:
    """A check against a format of `datetime.strptime`.

    Raises:
        MisfitError: a moment written in the format cannot be read back.
    """
    if not isinstance(pattern, str):
        raise MisfitError(f"{pattern!r} is no format")
    try:
        written = datetime.datetime(2024, 5, 1, 12, 30, tzinfo=datetime.UTC).strftime(pattern)
        datetime.datetime.strptime(written, pattern)
    except ValueError as error:
        raise MisfitError(f"the format {pattern!r} cannot be read: {error}") from error
    return StringCheck(StringKind.STRFTIME, pattern)


@lru_cache(maxsize=32)
def _check(wanted: StringCheck) -> Check:
    if wanted.kind is StringKind.JSON:
        return lambda text: _json(text) is not _NONE
    if wanted.kind is StringKind.DATE:
        return _is_date
    if wanted.kind is StringKind.STRFTIME:
        return lambda text: _is_written(text, wanted.argument)
    return _json_schema(json.loads(wanted.argument))


@dataclass(frozen=True)
class _Nothing:
    """What is no JSON; None is its null."""

    note: str = field(default="no JSON")


_NONE = _Nothing()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NONE


def _json_schema(schema: Mapping[str, Any]) -> Check:
    import jsonschema

    validator = jsonschema.validators.validator_for(schema)(schema)

    def check(text: str) -> bool:
        document = _json(text)
        return document is not _NONE and bool(validator.is_valid(document))

    return check


def _is_date(text: str) -> bool:
    from dateutil.parser import parse

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of zones that it does not know
        try:
            parse(text)
        except (ValueError, OverflowError):
            return False
    return True


def _is_written(text: str, pattern: str) -> bool:
    try:
        datetime.datetime.strptime(text, pattern)
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
