"""A month of runs with a change of the clock: no verb outside its windows, and none that waits too long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from delta_core.fleet.ledger import Row, instant
from delta_core.fleet.plan import make_plan
from delta_core.fleet.registry import FleetTable, registry_of
from delta_core.policies.fleet_model import BudgetPolicy
from delta_core.policies.load import parse_policies
from tests.support.soak import rounds

HOUR = 3_600_000
MINUTE = 60_000

WINDOWS: dict[str, dict[str, Any]] = {
    "nightly": {"zone": "Europe/Berlin", "windows": [("22:00", range(7), 6.0)]},
    "skipped": {"zone": "Europe/Berlin", "windows": [("02:30", range(7), 1.0)]},
    "workdays": {"zone": "Europe/Berlin", "windows": [("01:30", range(5), 2.0)]},
    "blackout": {
        "zone": "Europe/Berlin",
        "windows": [("22:00", range(7), 6.0)],
        "blackout": [("23:00", [4, 5], 3.0)],
    },
    "delayed": {"zone": "America/New_York", "windows": [("20:00", range(7), 4.0)], "jitter": 90},
    "two": {"zone": "Europe/Berlin", "windows": [("00:00", range(7), 1.5), ("12:15", [5, 6], 1.0)]},
}
"""Windows and blackouts as (local time, weekdays from Monday, hours)."""


def _policy(case: dict[str, Any]) -> dict[str, Any]:
    def spans(listed: list[tuple[str, Any, float]]) -> list[dict[str, Any]]:
        found = []
        for at, days, hours in listed:
            hour, minute = at.split(":")
            week = ",".join(str((day + 1) % 7) for day in days)
            found.append({"cron": f"{int(minute)} {int(hour)} * * {week}", "hours": hours})
        return found

    return {
        "windows": spans(case["windows"]),
        "blackout": spans(case.get("blackout", [])),
        "time_zone": case["zone"],
        "jitter_minutes": case.get("jitter", 0),
    }


def _spans(
    listed: list[tuple[str, Any, float]], zone: ZoneInfo, days: list[datetime]
) -> list[tuple[int, int]]:
    """The spans minute by minute, by the clock on the wall: a local time that occurs twice counts once."""
    found, seen = [], set()
    for day in days:
        for minute in range(24 * 60):
            now = day + timedelta(minutes=minute)
            wall = now.astimezone(zone)
            for at, week, hours in listed:
                key = (at, wall.date())
                if f"{wall:%H:%M}" == at and wall.weekday() in week and key not in seen:
                    seen.add(key)
                    begin = int(now.timestamp() * 1000)
                    found.append((begin, begin + int(hours * HOUR)))
    return found


def _row(table: FleetTable, due: dict[str, int]) -> Row:
    decisions = [
        {"verb": verb, "due": True, "reason": "due", "params": {}, "urgency": 1} for verb in ("optimize",)
    ]
    return {
        "uri": table.uri,
        "name": table.name,
        "table_id": table.name,
        "version": 1,
        "decisions": json.dumps(decisions),
        "compaction": json.dumps({"files_removed": 100, "bytes_removed": 10_000_000, "files_added": 1}),
        "commits_by_hour_of_week": None,
        "due_since": json.dumps(due),
        "rows": 10,
        "deleted_rows": 0,
        "total_bytes": 10_000_000,
        "error_code": None,
    }


def _run(table: FleetTable, at_ms: int) -> Row:
    return {
        "uri": table.uri,
        "verb": "optimize",
        "outcome": "succeeded",
        "plan_id": at_ms,
        "started_at": instant(at_ms),
        "finished_at": instant(at_ms),
        "actual_files": 100,
        "actual_bytes": 10_000_000,
        "predicted_files": 100,
        "predicted_bytes": 10_000_000,
        "cpu_seconds": 1.0,
        "money": 0.0,
        "error": None,
    }


def _steps(month: int, minutes: int) -> Iterator[int]:
    begin = datetime(2026, month, 1, tzinfo=UTC)
    end = datetime(2026, month + 1, 1, tzinfo=UTC)
    now = begin
    while now < end:
        yield int(now.timestamp() * 1000)
        now += timedelta(minutes=minutes)


@pytest.mark.parametrize("month", [3, 10])
def test_no_verb_runs_outside_its_windows_in_a_month_with_a_change_of_the_clock(month: int) -> None:
    document = {"tables": {name: {"uri": f"/lake/{name}", **_policy(case)} for name, case in WINDOWS.items()}}
    policies = parse_policies(json.dumps(document))
    tables = registry_of(policies, []).tables
    first = datetime(2026, month, 1, tzinfo=UTC) - timedelta(days=2)
    days = [first + timedelta(days=day) for day in range(36)]
    open_at, shut_at = {}, {}
    for name, case in WINDOWS.items():
        zone = ZoneInfo(case["zone"])
        open_at[name] = _spans(case["windows"], zone, days)
        shut_at[name] = _spans(case.get("blackout", []), zone, days)
    planned = dict.fromkeys(WINDOWS, 0)
    missed = dict.fromkeys(WINDOWS, 0)
    for now in _steps(month, rounds(usual=60, soak=3)):
        rows = {table.uri: _row(table, {}) for table in tables}
        plan = make_plan(tables, rows, [], plan_id=now, run_id="r", now_ms=now, budget=BudgetPolicy())
        chosen = {entry.name: entry for entry in plan.entries}
        for table in tables:
            inside = [span for span in open_at[table.name] if span[0] <= now < span[1]]
            shut = any(begin <= now < end for begin, end in shut_at[table.name])
            entry = chosen.get(table.name)
            if entry is None:
                nearly_over = inside and max(end for _, end in inside) - now < MINUTE
                delayed = bool(WINDOWS[table.name].get("jitter"))
                missed[table.name] += bool(inside) and not shut and not nearly_over and not delayed
                continue
            planned[table.name] += 1
            assert inside, (table.name, instant(now))
            assert not shut, (table.name, instant(now))
            closes = max(end for _, end in inside)
            later = [begin for begin, _ in shut_at[table.name] if begin > now]
            closes = min([closes, *later])
            assert entry.until_ms is not None
            assert now + entry.cpu_seconds * 1000 <= entry.until_ms <= closes
    assert all(planned.values())
    assert not any(missed.values())
    # One window of the month is skipped with the hour, and none is doubled.
    steps = 60 // rounds(usual=60, soak=3)
    assert planned["skipped"] == steps * (30 if month == 3 else 31)


def test_a_starved_table_is_served_within_its_maximum_age() -> None:
    """A run each night has time for one table of five; four of them are worth more."""
    document = {
        "defaults": {**_policy(WINDOWS["nightly"]), "max_age_hours": 120},
        "tables": {
            f"t{number}": {"uri": f"/lake/t{number}", "reads_per_day": 1000.0 if number else 0.001}
            for number in range(5)
        },
    }
    tables = registry_of(parse_policies(json.dumps(document)), []).tables
    since = {table.uri: 0 for table in tables}
    runs: list[Row] = []
    oldest = 0.0
    begin = None
    for now in _steps(3, 24 * 60):
        now += 22 * HOUR
        begin = now if begin is None else begin
        if now == begin:
            since = dict.fromkeys(since, now)
        rows = {table.uri: _row(table, {"optimize": since[table.uri]}) for table in tables}
        budget = BudgetPolicy(bytes=10_000_000)
        plan = make_plan(tables, rows, runs, plan_id=now, run_id="r", now_ms=now, budget=budget)
        assert len(plan.entries) == 1
        done = next(table for table in tables if table.uri == plan.entries[0].uri)
        oldest = max(oldest, (now - since[done.uri]) / HOUR)
        since[done.uri] = now
        runs.append(_run(done, now))
        assert all((now - at) / HOUR < 120 for at in since.values())
    assert oldest <= 120
