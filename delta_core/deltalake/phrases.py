"""The words of `deltalake` in the messages of errors.

Programs that came from `deltalake` look for these words in messages. They precede the problem; cause and fix
follow. Where `deltalake` raises a commit error for what is another kind of error here, the error is both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from delta_core import errors
from delta_core.errors import DeltaError

_COLUMNS = r"(nothing|\([^)]*\))"
_PARTITIONING = re.compile(rf"The table is partitioned by {_COLUMNS}, not by {_COLUMNS}\.")
_VIOLATED = re.compile(r" is violated by (\d+) of ")
_NULLS = re.compile(r"NOT NULL is violated: column .+? is null in (\d+) of ")
_NO_CAST = re.compile(r"cannot be cast to (\w+)\..*Failed to parse string: '(.*?)' as a scalar", re.DOTALL)
_OTHER_TYPE = re.compile(r"column (\S+) has type (\S+), the table expects (\S+?)[.;]")
_EXTRA_COLUMN = re.compile(r"does not fit the table's schema: column .+ is not in the table")
_NO_COLUMN = re.compile(r"Column (\S+) does not exist\.")
_GENERATED = re.compile(r"Column \S+ cannot be added with a generation expression\.")
_APPEND_ONLY = re.compile(r"The table is append-only")

_ARROW_NAMES: Final[Mapping[str, str]] = {
    "byte": "Int8",
    "short": "Int16",
    "integer": "Int32",
    "long": "Int64",
    "float": "Float32",
    "double": "Float64",
    "string": "Utf8",
    "binary": "Binary",
    "boolean": "Boolean",
    "date": "Date32",
}


def _partitioning(found: re.Match[str]) -> str:
    expected, given = (
        [] if part == "nothing" else [name.strip() for name in part.strip("()").split(",")]
        for part in found.groups()
    )
    return (
        "Generic error: Specified table partitioning does not match table partitioning: "
        f"expected: {_listed(expected)}, got: {_listed(given)}"
    )


def _listed(names: list[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def arrow_name(data_type: str) -> str:
    """The name that `deltalake` has for a type."""
    if decimal := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", data_type):
        return f"Decimal128({decimal[1]}, {decimal[2]})"
    return _ARROW_NAMES.get(data_type, data_type)


_PHRASES: tuple[tuple[type[DeltaError], re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        errors.ConstraintViolationError,
        _VIOLATED,
        lambda found: f"Invalid data found: {found[1]} rows failed validation check.",
    ),
    (
        errors.ConstraintViolationError,
        _NULLS,
        lambda found: f"Invalid data found: {found[1]} rows failed validation check.",
    ),
    (
        errors.ExpressionError,
        _NO_CAST,
        lambda found: f"Cannot cast string '{found[2]}' to value of {found[1].title()} type.",
    ),
    (errors.SchemaError, _EXTRA_COLUMN, lambda _: "Cannot cast schema, number of fields does not match."),
    (
        errors.SchemaError,
        _OTHER_TYPE,
        lambda found: f"Cannot cast field {found[1]} from {arrow_name(found[2])} to {arrow_name(found[3])}.",
    ),
    (DeltaError, _PARTITIONING, _partitioning),
    (errors.ExpressionError, _NO_COLUMN, lambda found: f"No field named {found[1]}."),
    (DeltaError, _GENERATED, lambda _: "New columns cannot be a generated column."),
    (
        errors.InvalidTableError,
        _APPEND_ONLY,
        lambda _: "The transaction includes Remove action with data change but Delta table is append-only.",
    ),
)


def with_phrase(error: DeltaError) -> DeltaError:
    """The error, whose problem begins with the words of `deltalake` where it has some for the problem."""
    for kind, pattern, phrase in _PHRASES:
        found = pattern.search(f"{error.problem} {error.cause}") if isinstance(error, kind) else None
        if found is None:
            continue
        words = phrase(found)
        if not error.problem.startswith(words):
            separator = " " if words.endswith(".") else ". "
            error.problem = f"{words}{separator}{error.problem}"
            error.args = (error.problem, error.cause, error.fix)
        return error
    return error


def is_commit_error(error: DeltaError) -> bool:
    """Whether `deltalake` refuses at the commit what is refused before it here."""
    return isinstance(error, errors.InvalidTableError) and _APPEND_ONLY.search(error.problem) is not None
