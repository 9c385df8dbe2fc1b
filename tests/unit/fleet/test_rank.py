from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core.fleet.cost import PRIORS, fit
from delta_core.fleet.rank import Candidate, Spent, rank, remaining
from delta_core.fleet.windows import busy_hours, gate, jitter, next_opening_ms, schedule_reached
from delta_core.policies.cron import parse_cron, time_zone
from delta_core.policies.fleet_model import BudgetPolicy, FleetSettings

HOUR = 3_600_000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_a_month_with_a_change_of_the_clock_has_no_verb_outside_the_windows() -> None:
    policy = FleetSettings.model_validate(
        {
            "time_zone": "Europe/Berlin",
            "windows": [{"cron": "0 22 * * *", "hours": 5}, {"cron": "30 2 * * 0", "hours": 1}],
            "blackout": [{"cron": "0 0 25 10 *", "hours": 30}],
        }
    )
    zone = time_zone("Europe/Berlin")
    opened = 0
    for minute in range(0, 31 * 24 * 60, 15):
        now_ms = at("2026-10-01T00:00") + minute * 60_000
        local = datetime.fromtimestamp(now_ms / 1000, tz=zone)
        night = local.hour >= 22 or local.hour < 3
        sunday = local.isoweekday() == 7 and (2, 30) <= (local.hour, local.minute) < (3, 30)
        found = gate(policy, now_ms=now_ms)
        black = at("2026-10-24T22:00") <= now_ms < at("2026-10-26T04:00")
        if black:
            assert not found.is_open
            assert "blackout" in found.reason
        elif found.is_open:
            assert night or sunday, local
            assert found.until_ms is not None
            assert found.until_ms > now_ms
        opened += found.is_open
    assert opened > 31 * 4 * 4


def test_a_window_that_the_clock_skips_is_closed_and_one_that_is_repeated_opens_once() -> None:
    zone = time_zone("Europe/Berlin")
    cron = parse_cron("30 2 * * *")
    assert list(cron.times_of(datetime(2026, 3, 29).date(), zone)) == []
    assert list(cron.times_of(datetime(2026, 10, 25).date(), zone)) == [at("2026-10-25T00:30")]
    policy = FleetSettings.model_validate(
        {"time_zone": "Europe/Berlin", "windows": [{"cron": "30 2 * * *", "hours": 1}]}
    )
    assert not any(gate(policy, now_ms=at("2026-03-29T00:00") + m * 60_000).is_open for m in range(180))
    # At 02:30 of the second pass, the window of the first pass is over.
    assert not gate(policy, now_ms=at("2026-10-25T01:40")).is_open


def test_quiet_hours_jitter_and_schedules() -> None:
    hours = [0] * 168
    hours[10] = 100  # Monday, 10:00
    assert busy_hours(hours) == {10}
    assert busy_hours([0] * 168) == frozenset()
    policy = FleetSettings(quiet="auto")
    monday = at("2026-11-30T00:00")
    assert gate(policy, now_ms=monday, hours=hours).until_ms == monday + 10 * HOUR
    assert "often" in gate(policy, now_ms=monday + 10 * HOUR + 1, hours=hours).reason
    late = FleetSettings.model_validate({"windows": [{"cron": "@daily", "hours": 4}], "jitter_minutes": 60})
    delays = {jitter(str(table), 60) for table in range(100)}
    assert min(delays) < 10
    assert max(delays) > 50
    delay = jitter("t", 60)
    assert not gate(late, now_ms=monday + (delay - 1) * 60_000, table_id="t").is_open
    assert gate(late, now_ms=monday + delay * 60_000, table_id="t").is_open
    weekly = FleetSettings(schedule="@weekly")
    sunday = at("2026-11-29T00:00")
    assert schedule_reached(weekly, now_ms=monday, last_ms=sunday - 1)
    assert not schedule_reached(weekly, now_ms=monday, last_ms=sunday + 1)
    assert schedule_reached(weekly, now_ms=monday, last_ms=None)
    assert schedule_reached(FleetSettings(), now_ms=monday, last_ms=monday)


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        uri=st.uuids().map(str),
        verb=st.just("optimize"),
        gain=st.floats(0, 1e9),
        cpu_seconds=st.floats(0.001, 100),
        size_bytes=st.integers(0, 10**9),
        age_hours=st.floats(0, 400),
        priority=st.floats(0.1, 10),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(candidates=CANDIDATES, size=st.integers(1, 10**9), seconds=st.floats(0.1, 500))
def test_a_ranking_respects_the_budget_and_loses_nothing(
    candidates: list[Candidate], size: int, seconds: float
) -> None:
    allowance = remaining(BudgetPolicy(bytes=size, cpu_seconds=seconds))
    found = rank(candidates, allowance)
    assert sum(item.size_bytes for item in found.chosen) <= size
    assert sum(item.cpu_seconds for item in found.chosen) <= seconds * (1 + 1e-9)
    everything = [*found.chosen, *(item for item, _ in found.deferred)]
    assert sorted(item.uri for item in everything) == sorted(item.uri for item in candidates)
    assert all(reason for _, reason in found.deferred)


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 100), min_size=2, max_size=12),
    gains=st.lists(st.floats(1, 1000), min_size=12, max_size=12),
    budget=st.integers(100, 200),
)
def test_a_verb_that_fits_the_budget_is_served_within_a_bounded_time(
    sizes: list[int], gains: list[float], budget: int
) -> None:
    """New work arrives in each run. Nothing waits longer than its greatest age and a turn for each other."""
    base = Candidate(uri="", verb="optimize", gain=0, cpu_seconds=1, size_bytes=0, max_age_hours=10)
    waiting = {
        index: replace(base, uri=str(index), size_bytes=size, gain=gains[index])
        for index, size in enumerate(sizes)
    }
    for _ in range(60):
        found = rank(waiting.values(), remaining(BudgetPolicy(bytes=budget)))
        served = {int(item.uri) for item in found.chosen}
        assert served
        for index, item in waiting.items():
            waiting[index] = replace(item, age_hours=0 if index in served else item.age_hours + 1)
        assert max(item.age_hours for item in waiting.values()) <= 10 + len(sizes)


def test_a_day_counts_the_runs_before_and_one_large_gain_beats_many_small_ones() -> None:
    budget = BudgetPolicy(bytes=100, bytes_per_day=150)
    left = remaining(budget, Spent(size_bytes=120, cpu_seconds=0, money=0))
    assert left.size_bytes == 30
    small = Candidate(uri="s", verb="optimize", gain=10, cpu_seconds=1, size_bytes=10)
    large = Candidate(uri="l", verb="optimize", gain=500, cpu_seconds=60, size_bytes=100)
    assert [item.uri for item in rank([small, large], remaining(budget)).chosen] == ["l"]


def test_a_verb_that_would_starve_before_its_next_chance_goes_first() -> None:
    good = Candidate(uri="g", verb="optimize", gain=1e9, cpu_seconds=1, size_bytes=10)
    poor = replace(good, uri="p", gain=1, max_age_hours=100, age_hours=80)
    budget = remaining(BudgetPolicy(bytes=10))
    assert [item.uri for item in rank([good, poor], budget).chosen] == ["g"]
    assert [item.uri for item in rank([good, replace(poor, next_chance_hours=24)], budget).chosen] == ["p"]
    # However seldom a table has a chance, new work is not old.
    assert not replace(poor, age_hours=10, next_chance_hours=1000).starved
    weekly = FleetSettings.model_validate(
        {"windows": [{"cron": "@weekly", "hours": 4}], "blackout": [{"cron": "0 0 6 12 *", "hours": 9}]}
    )
    assert next_opening_ms(weekly, after_ms=at("2026-11-30T00:00")) == at("2026-12-13T00:00")
    assert next_opening_ms(FleetSettings(), after_ms=0) is None


def run(files: int, size: int, seconds: float) -> dict[str, Any]:
    return {
        "verb": "optimize",
        "outcome": "succeeded",
        "predicted_files": files,
        "predicted_bytes": size,
        "actual_files": files,
        "cpu_seconds": seconds,
    }


def test_the_costs_follow_a_few_runs() -> None:
    def true(files: int, size: int) -> float:
        return 0.05 + 3e-8 * size + 0.001 * files

    shapes = [(30, 25_000), (12, 10**6), (100, 10**8), (50, 10**9), (200, 10**7)]
    assert fit([]).verbs == PRIORS
    for count in (2, 5):
        model = fit([run(*shape, true(*shape)) for shape in shapes[:count]])
        for shape in shapes[:count]:
            predicted = model.seconds("optimize", files=shape[0], size_bytes=shape[1])
            assert abs(predicted / true(*shape) - 1) < 0.3
    model = fit([run(*shape, true(*shape)) for shape in shapes], price_per_cpu_hour=3.6)
    unseen = model.seconds("optimize", files=80, size_bytes=3 * 10**8)
    assert abs(unseen / true(80, 3 * 10**8) - 1) < 0.3
    assert model.money(1000) == 1.0
    assert model.verbs["optimize"].runs == 5
