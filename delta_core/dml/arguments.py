"""What callers pass to operations of a table by name: texts, columns by name or path, places of columns.

Python lets anything be passed; what is of another kind is refused before the table is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_core.errors import ConfigurationError
from delta_core.schema.column_changes import After, First


def require_string(value: object, *, what: str) -> str:
    """The value, which is a text that a log can hold.

    Raises:
        ConfigurationError: it is not.
    """
    if not isinstance(value, str):
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.",
            cause=f"It is of type {type(value).__name__}.",
            fix="Pass a text.",
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.", cause=f"It is no text of Unicode: {error}.", fix="Correct it."
        ) from error
    return value


def column_path(column: object) -> tuple[str, ...]:
    """A column by its name, or by the names that lead to it.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(column, str):
        return (require_string(column, what="name of a column"),)
    return tuple(require_string(name, what="name of a column") for name in _listed(column, _COLUMN))


def column_paths(columns: object) -> list[tuple[str, ...]]:
    """Some columns, a name or path each; a text is one of them.

    Raises:
        ConfigurationError: they are none.
    """
    return [
        column_path(column)
        for column in ([columns] if isinstance(columns, str) else _listed(columns, _COLUMNS))
    ]


def strings(values: object, *, what: str) -> list[str]:
    """Some texts; one by itself is a list of it.

    Raises:
        ConfigurationError: there is something else.
    """
    given = [values] if isinstance(values, str) else _listed(values, _STRINGS)
    return [require_string(value, what=what) for value in given]


def require_position(position: object) -> First | After:
    """The place of a column.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(position, First):
        return position
    if isinstance(position, After):
        require_string(position.column, what="column to be after")
        return position
    raise ConfigurationError(
        f"A column has no place {position!r}.",
        cause=f"It is of type {type(position).__name__}.",
        fix='Pass delta_core.First() or delta_core.After("id").',
    )


_COLUMN = ("column", "Pass its name, or the list of names that lead to it.")
_COLUMNS = ("list of columns", "Pass a name, or a list of names or paths.")
_STRINGS = ("list of names", "Pass a name, or a list of names.")


def _listed(values: object, wanted: tuple[str, str]) -> Iterable[object]:
    if isinstance(values, Iterable) and not isinstance(values, bytes | bytearray):
        return values
    what, fix = wanted
    raise ConfigurationError(
        f"{values!r} is no {what}.", cause=f"It is of type {type(values).__name__}.", fix=fix
    )
