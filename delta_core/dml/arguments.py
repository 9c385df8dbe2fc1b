"""Checks arguments of table operations: strings, names and paths of columns, positions of columns.

A value of a wrong type is refused before the table is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.errors import ConfigurationError
from delta_core.schema.column_changes import After, First


def require_string(value: object, *, what: str) -> str:
    """Return the value when it is a string that a log can hold.

    Raises:
        ConfigurationError: the value is not such a string.
    """
    if not isinstance(value, str):
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.",
            cause=f"It is of type {type(value).__name__}.",
            fix="Pass a string.",
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.",
            cause=f"The string is not valid Unicode: {error}.",
            fix="Pass a string without lone surrogates.",
        ) from error
    return value


def column_path(column: object) -> tuple[str, ...]:
    """The path of a column, given by its name or by the list of names on the way to it.

    Raises:
        ConfigurationError: the value is neither.
    """
    if isinstance(column, str):
        return (require_string(column, what="name of a column"),)
    return tuple(require_string(name, what="name of a column") for name in _listed(column, _COLUMN))


def column_paths(columns: object) -> list[tuple[str, ...]]:
    """The paths of columns, each given by a name or path. A single string is one column.

    Raises:
        ConfigurationError: the value is not a list of columns.
    """
    return [
        column_path(column)
        for column in ([columns] if isinstance(columns, str) else _listed(columns, _COLUMNS))
    ]


def strings(values: object, *, what: str) -> list[str]:
    """A list of strings. A single string becomes a list of one.

    Raises:
        ConfigurationError: a value is not a string.
    """
    given = [values] if isinstance(values, str) else _listed(values, _STRINGS)
    return [require_string(value, what=what) for value in given]


def require_position(position: object) -> First | After:
    """Return the value when it is a position of a column.

    Raises:
        ConfigurationError: the value is not a position.
    """
    if isinstance(position, First):
        return position
    if isinstance(position, After):
        require_string(position.column, what="column to be after")
        return position
    raise ConfigurationError(
        f"{position!r} is not a position of a column.",
        cause=f"It is of type {type(position).__name__}.",
        fix='Pass delta_core.First() or delta_core.After("id").',
    )


_COLUMN = ("column", "Pass its name, or the list of names that lead to it.")
_COLUMNS = ("list of columns", "Pass a name, or a list of names or paths.")
_STRINGS = ("list of names", "Pass a name, or a list of names.")


def _listed(values: object, expected: tuple[str, str]) -> Iterable[object]:
    if isinstance(values, Iterable) and not isinstance(values, bytes | bytearray):
        return values
    what, fix = expected
    raise ConfigurationError(
        f"{values!r} is not a {what}.", cause=f"It is of type {type(values).__name__}.", fix=fix
    )
