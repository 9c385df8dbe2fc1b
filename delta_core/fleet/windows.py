"""When verbs may run: windows, blackouts, quiet hours and jitter, in the table's time zone. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from delta_core.fleet.facts import hour_of_week
from delta_core.policies.cron import parse_cron, time_zone
from delta_core.policies.fleet_model import FleetSettings, WindowPolicy

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_MANY_COMMITS: Final = 50
_BUSY: Final = 1.5
_MOST_OPENINGS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether verbs may run on a table now.

    Attributes:
        is_open: whether they may.
        until_ms: the time at which the gate closes; None when it stays open.
        reason: why it is closed; empty when it is open.
    """

    is_open: bool
    until_ms: int | None = None
    reason: str = ""


def gate(settings: FleetSettings, *, now_ms: int, table_id: str = "", hours: Sequence[int] = ()) -> Gate:
    """Whether verbs may run on a table now. A blackout wins over a window.

    Args:
        settings: the table's policy.
        now_ms: the time.
        table_id: the table's id, from which the jitter of its windows follows.
        hours: commits for each hour of the week (UTC), for `quiet: auto`.
    """
    black = [_covering(item, settings, now_ms, 0) for item in settings.blackout]
    if ends := [end for end in black if end is not None]:
        return Gate(is_open=False, reason=f"a blackout lasts {_minutes(max(ends) - now_ms)} more")
    until: int | None = None
    if settings.windows:
        jitter_ms = jitter(table_id, settings.jitter_minutes) * _MINUTE_MS
        ends = [
            end
            for item in settings.windows
            if (end := _covering(item, settings, now_ms, jitter_ms)) is not None
        ]
        if not ends:
            return Gate(is_open=False, reason="no window is open")
        until = max(ends)
    if settings.quiet == "auto":
        busy_at = _next_busy_ms(hours, now_ms)
        if busy_at is not None and busy_at <= now_ms:
            return Gate(is_open=False, reason="other writers commit often in this hour of the week")
        until = _earlier(until, busy_at)
    zone = time_zone(settings.time_zone)
    for item in settings.blackout:
        until = _earlier(until, parse_cron(item.cron).next_after(now_ms, zone))
    return Gate(is_open=True, until_ms=until)


def next_opening_ms(
    settings: FleetSettings, *, after_ms: int, table_id: str = "", hours: Sequence[int] = ()
) -> int | None:
    """The next time at which a window of the table opens; None without one soon."""
    zone = time_zone(settings.time_zone)
    jitter_ms = jitter(table_id, settings.jitter_minutes) * _MINUTE_MS
    found: int | None = None
    for item in settings.windows:
        begin: int | None = after_ms
        for _ in range(_MOST_OPENINGS):
            begin = None if begin is None else parse_cron(item.cron).next_after(begin, zone)
            if begin is None:
                break
            opens = begin + min(jitter_ms, int(item.hours * _HOUR_MS) // 2)
            if gate(settings, now_ms=opens, table_id=table_id, hours=hours).is_open:
                found = _earlier(found, opens)
                break
    return found


def schedule_reached(settings: FleetSettings, *, now_ms: int, last_ms: int | None) -> bool:
    """Whether a time of the table's schedule has passed since a verb last ran. True without a schedule.

    Without an earlier run, the last 366 days count.
    """
    if settings.schedule is None:
        return True
    cron, zone = parse_cron(settings.schedule), time_zone(settings.time_zone)
    latest = cron.latest(now_ms, zone, within=timedelta(days=366))
    return latest is not None and (last_ms is None or last_ms < latest)


def jitter(table_id: str, minutes: int) -> int:
    """The minutes by which the windows of a table begin later, at most `minutes`. Depends on the id alone."""
    digest = hashlib.sha256(table_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") % (minutes + 1)


def busy_hours(hours: Sequence[int]) -> frozenset[int]:
    """The hours of the week with at least half more commits than the average; none with few commits."""
    total = sum(hours)
    if total < _MANY_COMMITS:
        return frozenset()
    limit = _BUSY * total / len(hours)
    return frozenset(hour for hour, count in enumerate(hours) if count >= limit)


def _covering(item: WindowPolicy, settings: FleetSettings, now_ms: int, jitter_ms: int) -> int | None:
    """The end of a window that covers the time; None without one."""
    length_ms = int(item.hours * _HOUR_MS)
    delay_ms = min(jitter_ms, length_ms // 2)
    zone = time_zone(settings.time_zone)
    begins: Iterator[int] = parse_cron(item.cron).back_from(
        now_ms, zone, within=timedelta(milliseconds=length_ms)
    )
    ends = [begin + length_ms for begin in begins if begin + delay_ms <= now_ms < begin + length_ms]
    return max(ends, default=None)


def _next_busy_ms(hours: Sequence[int], now_ms: int) -> int | None:
    busy = busy_hours(hours)
    if not busy:
        return None
    now = hour_of_week(now_ms)
    ahead = min((hour - now) % 168 for hour in busy)
    return now_ms // _HOUR_MS * _HOUR_MS + ahead * _HOUR_MS


def _earlier(first: int | None, second: int | None) -> int | None:
    return min((value for value in (first, second) if value is not None), default=None)


def _minutes(span_ms: int) -> str:
    return f"{max(1, round(span_ms / _MINUTE_MS))} min"
