"""Pauses stay between their bounds and differ from writer to writer."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from delta_core.transaction.backoff import DecorrelatedJitter, FullJitter


def test_transport_pauses_grow_to_the_cap() -> None:
    pauses = DecorrelatedJitter(random=Random(1))
    drawn = [pauses.next_seconds() for _ in range(200)]
    assert drawn[0] == 0.05
    assert all(0.05 <= pause <= 5.0 for pause in drawn)
    assert max(drawn) == 5.0
    assert all(after <= max(0.05, before * 3) for before, after in pairwise(drawn))


def test_conflict_pauses_are_spread_below_a_growing_ceiling() -> None:
    drawn = []
    for seed in range(500):
        pauses = FullJitter(random=Random(seed))
        drawn.append([pauses.next_seconds() for _ in range(12)])
    for attempt in range(12):
        ceiling = min(0.3, 0.02 * 2**attempt)
        column = [pauses[attempt] for pauses in drawn]
        assert all(0 <= pause <= ceiling for pause in column)
        assert 0.4 * ceiling < sum(column) / len(column) < 0.6 * ceiling


def test_exponent_does_not_overflow() -> None:
    pauses = FullJitter(random=Random(1))
    assert all(pauses.next_seconds() <= 0.3 for _ in range(2000))
