"""Cron expressions: the times of a day at which something begins, in a named time zone. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from delta_core.errors import ConfigurationError

_NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_WORDS: tuple[dict[str, int], ...] = (
    {},
    {},
    {},
    {
        name: i
        for i, name in enumerate(
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
        )
    },
    {name: i for i, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])},
)
_MOST_DAYS = 366 * 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A cron expression.

    As in cron, a day must match the day of the month or the day of the week when both are restricted.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def matches_day(self, day: date) -> bool:
        """Whether the expression has a time on this day."""
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return of_month and of_week
        return of_month or of_week

    def times_of(self, day: date, zone: ZoneInfo) -> Iterator[int]:
        """The times on a local day, in epoch milliseconds, ascending.

        A local time that a change of the clock skips does not exist, and is left out. Of a local time that
        occurs twice, only the first counts.
        """
        if not self.matches_day(day):
            return
        for hour in sorted(self.hours):
            for minute in sorted(self.minutes):
                local = datetime.combine(day, time(hour, minute), tzinfo=zone)
                instant = local.astimezone(UTC)
                if instant.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
                    yield int(instant.timestamp() * 1000)

    def latest(self, now_ms: int, zone: ZoneInfo, *, within: timedelta) -> int | None:
        """The latest time at or before `now_ms`, but not before `now_ms - within`; None without one."""
        return next(self.back_from(now_ms, zone, within=within), None)

    def back_from(self, now_ms: int, zone: ZoneInfo, *, within: timedelta) -> Iterator[int]:
        """The times at or before `now_ms`, newest first, but not before `now_ms - within`."""
        now = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
        first_ms = now_ms - int(within.total_seconds() * 1000)
        day, first_day = now.astimezone(zone).date(), (now - within).astimezone(zone).date()
        for _ in range(_MOST_DAYS):
            if day < first_day:
                return
            for at_ms in sorted(self.times_of(day, zone), reverse=True):
                if first_ms <= at_ms <= now_ms:
                    yield at_ms
            day -= timedelta(days=1)

    def next_after(self, now_ms: int, zone: ZoneInfo) -> int | None:
        """The first time after `now_ms` within five years; None without one."""
        day = datetime.fromtimestamp(now_ms / 1000, tz=UTC).astimezone(zone).date()
        for _ in range(_MOST_DAYS):
            for at_ms in self.times_of(day, zone):
                if at_ms > now_ms:
                    return at_ms
            day += timedelta(days=1)
        return None


@cache
def parse_cron(text: str) -> Cron:
    """Parse five fields (minute, hour, day of month, month, day of week) or a name such as `@daily`.

    Raises:
        ConfigurationError: the expression is not valid. This is also a ValueError for a validator.
    """
    fields = _NAMES.get(text.strip().lower(), text).split()
    if len(fields) != 5:
        raise InvalidCronError(
            f"The cron expression {text!r} is not valid.",
            cause=f"It has {len(fields)} fields.",
            fix=f"Write five fields, such as `0 22 * * 1-5`, or one of {', '.join(_NAMES)}.",
        )
    minutes, hours, days, months, weekdays = (
        frozenset(_values(field, index, text)) for index, field in enumerate(fields)
    )
    return Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        any_day=fields[2] == "*",
        any_weekday=fields[4] == "*",
    )


@cache
def time_zone(name: str) -> ZoneInfo:
    """The time zone with this name of the tz database.

    Raises:
        ConfigurationError: the time zone is not known. This is also a ValueError for a validator.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidCronError(
            f"The time zone {name!r} is not known.", fix="Write a name such as Europe/Berlin or UTC."
        ) from error


class InvalidCronError(ConfigurationError, ValueError):
    """A cron expression or time zone is not valid. Also a ValueError, which validators expect."""


def _values(field: str, index: int, text: str) -> Iterator[int]:
    low, high = _RANGES[index]
    for part in field.lower().split(","):
        span, _, step_text = part.partition("/")
        first, dash, last = span.partition("-")
        begin = low if span == "*" else _number(first, index, text)
        if span == "*":
            end = 6 if index == 4 else high
        else:
            end = _number(last, index, text) if dash else (high if step_text else begin)
        step = int(step_text) if step_text.isdecimal() else (0 if "/" in part else 1)
        if not low <= begin <= end <= high or step < 1:
            raise InvalidCronError(
                f"The cron expression {text!r} is not valid.",
                cause=f"The field {part!r} is not within {low} to {high}.",
                fix="Compare the expression with `0 22 * * 1-5`.",
            )
        yield from range(begin, end + 1, step)


def _number(word: str, index: int, text: str) -> int:
    known: dict[str, int] = _WORDS[index]
    if word in known:
        return known[word]
    if not word.isdecimal():
        raise InvalidCronError(
            f"The cron expression {text!r} is not valid.",
            cause=f"{word!r} is not a number.",
            fix="Compare the expression with `0 22 * * 1-5`.",
        )
    return int(word)
