"""What callers of an open table may write for a time, for names and for a limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from delta_core.errors import ConfigurationError
from delta_core.snapshot.commit_time import whole_number

Instant = int | datetime | str
"""A time: milliseconds since 1970 (UTC), or a `datetime` or a text of ISO 8601 with its zone."""

_TIME_FIX = (
    "Pass whole milliseconds since 1970 (UTC), or a datetime or a text with a zone: '2026-01-31T12:00:00Z'."
)

_LARGEST_BYTES = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def epoch_ms(when: Instant | None, *, up: bool = False) -> int | None:
    """The time in milliseconds since 1970 (UTC); None stays None.

    Args:
        when: a whole number is taken as it is.
        up: whether a `datetime` between two milliseconds is the later one: where a range begins.

    Raises:
        ConfigurationError: a `datetime` or a text without a zone, or what is no time.
    """
    if isinstance(when, str):
        when = _of_string(when, what="timestamp_ms")
    if isinstance(when, datetime):
        since_epoch = None if when.utcoffset() is None else when - _EPOCH
        if since_epoch is None:
            raise ConfigurationError(
                f"The time {when.isoformat()} has no zone.",
                cause="The same text is another instant in every zone, and the log has instants.",
                fix="Pass one with a zone, such as datetime(2026, 1, 31, tzinfo=UTC).",
            )
        millisecond = timedelta(milliseconds=1)
        return -(-since_epoch // millisecond) if up else since_epoch // millisecond
    return whole_number(when, what="timestamp_ms", fix=_TIME_FIX)


def _of_string(text: str, *, what: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"The {what} cannot be {text!r}.", cause="The text is no time of ISO 8601.", fix=_TIME_FIX
        ) from None


def version_or_time(version: Instant | None, timestamp_ms: Instant | None) -> tuple[int | None, int | None]:
    """A version and a time as they were given, where a `datetime` or a text for the version is a time.

    Returns:
        The version, still to be checked, and the time in milliseconds since 1970 (UTC).

    Raises:
        ConfigurationError: two times, or what `epoch_ms` refuses.
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
    """The names; a text is one name, never its letters. None stays None.

    Raises:
        ConfigurationError: they are no texts.
    """
    if names is None or isinstance(names, str):
        return None if names is None else [names]
    found = list(names) if isinstance(names, Iterable) else [names]
    for name in found:
        if not isinstance(name, str):
            raise ConfigurationError(
                f"The {what} cannot be {names!r}.",
                cause=f"{name!r} is of type {type(name).__name__}.",
                fix="Pass names of columns, such as ['day', 'country'].",
            )
    return found


def of_shard(shard: object) -> tuple[int, int]:
    """A reader's number and how many there are.

    Raises:
        ConfigurationError: it is no pair of such numbers.
    """
    match shard:
        case (int(index), int(count)) if 0 <= index < count:
            return index, count
    raise ConfigurationError(
        f"There is no shard {shard!r}.",
        cause="A shard is a reader's number and how many readers there are.",
        fix="Pass a pair such as (0, 4); numbers go from 0 to one below the count.",
    )


def at_least(lowest: int, value: int | None, *, what: str, fix: str) -> int | None:
    """The value; None stays None.

    Raises:
        ConfigurationError: it is below the lowest, or no whole number.
    """
    number = whole_number(value, what=what, fix=fix)
    if number is not None and number < lowest:
        raise ConfigurationError(f"The {what} cannot be {number}.", cause=f"It is below {lowest}.", fix=fix)
    return number


def whole_bytes(value: int | None, *, what: str) -> int | None:
    """A size in bytes; None stays None. Which sizes make sense, its user knows.

    Raises:
        ConfigurationError: it is no whole number, or none that a file could have.
    """
    fix = "Pass a number of bytes such as 134217728."
    size = whole_number(value, what=what, fix=fix)
    if size is not None and size > _LARGEST_BYTES:
        raise ConfigurationError(f"The {what} cannot be {size}.", cause="It is above 2^63 - 1.", fix=fix)
    return size


def share(value: float, *, what: str) -> float:
    """A number from 0 to 1.

    Raises:
        ConfigurationError: it is none.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise ConfigurationError(
            f"The {what} cannot be {value!r}.",
            cause="It is a share, from 0 for nothing to 1 for all.",
            fix="Pass a number such as 0.2.",
        )
    return value
