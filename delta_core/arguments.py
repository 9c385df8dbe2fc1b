"""Checks and parses arguments of public calls: numbers, times, strings, names and paths of columns, shards.

A value of a wrong type is refused before the table is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from operator import index
from typing import SupportsIndex

from delta_core.errors import ConfigurationError

Instant = int | datetime | str
"""A time: milliseconds since 1970 (UTC), or a `datetime` or an ISO 8601 string with a time zone."""

_TIME_FIX = (
    "Pass whole milliseconds since 1970 (UTC), or a datetime or a string with a time zone such as "
    "'2026-01-31T12:00:00Z'."
)

_LARGEST_BYTES = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def whole_number(value: object, *, what: str, fix: str) -> int | None:
    """A version or time from a caller as an int; None stays None.

    Raises:
        ConfigurationError: the value is not an integer, or is a bool.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.", cause=f"It is of type {type(value).__name__}.", fix=fix
        )
    return index(value)


def epoch_ms(when: Instant | None, *, up: bool = False) -> int | None:
    """The time in milliseconds since 1970 (UTC); None stays None.

    Args:
        when: the time. Whole numbers are taken as milliseconds.
        up: round a `datetime` between two milliseconds up, as for the start of a range.

    Raises:
        ConfigurationError: a `datetime` or a string without a time zone, or an invalid time.
    """
    if isinstance(when, str):
        when = _of_string(when, what="timestamp_ms")
    if isinstance(when, datetime):
        since_epoch = None if when.utcoffset() is None else when - _EPOCH
        if since_epoch is None:
            raise ConfigurationError(
                f"The time {when.isoformat()} has no time zone.",
                cause="Without a time zone it is ambiguous, since the log has times in UTC.",
                fix="Pass a time with a time zone, such as datetime(2026, 1, 31, tzinfo=UTC).",
            )
        millisecond = timedelta(milliseconds=1)
        return -(-since_epoch // millisecond) if up else since_epoch // millisecond
    return whole_number(when, what="timestamp_ms", fix=_TIME_FIX)


def _of_string(value: str, *, what: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.",
            cause="The string is not a valid time in ISO 8601.",
            fix=_TIME_FIX,
        ) from None


def version_or_time(version: Instant | None, timestamp_ms: Instant | None) -> tuple[int | None, int | None]:
    """The version and the time of two arguments. A `datetime` or a string as version counts as the time.

    Returns:
        The version, not yet checked, and the time in milliseconds since 1970 (UTC).

    Raises:
        ConfigurationError: two times were given, or a time is invalid; see `epoch_ms`.
    """
    if not isinstance(version, datetime | str):
        return version, epoch_ms(timestamp_ms)
    if timestamp_ms is not None:
        raise ConfigurationError(
            "Two times were given.",
            cause=f"They are {version!r} and {timestamp_ms!r}.",
            fix="Pass one of them.",
        )
    return None, epoch_ms(_of_string(version, what="version") if isinstance(version, str) else version)


def name_list(names: Iterable[str] | str | None, *, what: str = "columns") -> Sequence[str] | None:
    """The names as a list. A string counts as one name. None stays None.

    Raises:
        ConfigurationError: a name is not a string.
    """
    if names is None or isinstance(names, str):
        return None if names is None else [names]
    listed = list(names) if isinstance(names, Iterable) else [names]
    for name in listed:
        if not isinstance(name, str):
            raise ConfigurationError(
                f"The {what} cannot be {names!r}.",
                cause=f"{name!r} is of type {type(name).__name__}.",
                fix="Pass names of columns, such as ['day', 'country'].",
            )
    return listed


def parse_shard(shard: object) -> tuple[int, int]:
    """The index of a reader and the number of readers.

    Raises:
        ConfigurationError: the shard is not a pair of such numbers.
    """
    match shard:
        case (int(index), int(count)) if 0 <= index < count:
            return index, count
    raise ConfigurationError(
        f"The shard {shard!r} is not valid.",
        cause="A shard is a pair of the reader's index and the number of readers.",
        fix="Pass a pair such as (0, 4). The index must be from 0 to the number of readers minus 1.",
    )


def at_least(lowest: int, value: int | None, *, what: str, fix: str) -> int | None:
    """Return the value when it is at least `lowest`; None stays None.

    The message of the error contains `what`, the name of the value, and `fix`.

    Raises:
        ConfigurationError: the value is below `lowest`, or not a whole number.
    """
    number = whole_number(value, what=what, fix=fix)
    if number is not None and number < lowest:
        raise ConfigurationError(f"The {what} cannot be {number}.", cause=f"It is below {lowest}.", fix=fix)
    return number


def whole_bytes(value: int | None, *, what: str) -> int | None:
    """A size in bytes; None stays None. The caller checks whether the size makes sense.

    Raises:
        ConfigurationError: the value is not a whole number, or above 2^63 - 1.
    """
    fix = "Pass a number of bytes such as 134217728."
    size = whole_number(value, what=what, fix=fix)
    if size is not None and size > _LARGEST_BYTES:
        raise ConfigurationError(f"The {what} cannot be {size}.", cause="It is above 2^63 - 1.", fix=fix)
    return size


def share(value: float, *, what: str) -> float:
    """Return the value when it is a number from 0 to 1; `what` names it in messages.

    Raises:
        ConfigurationError: the value is not a number from 0 to 1.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.",
            cause="A share is a number from 0 to 1.",
            fix="Pass a number such as 0.2.",
        )
    return value


def require_string(value: object, *, what: str) -> str:
    """Return the value when it is a string that a log can hold; `what` names the value in messages.

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
    """The argument as a list of strings, where a single string is a list of one; `what` names an item.

    Raises:
        ConfigurationError: a value is not a string.
    """
    given = [values] if isinstance(values, str) else _listed(values, _STRINGS)
    return [require_string(value, what=what) for value in given]


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
