"""Backfills: loads of partitions in any order, at once, cleared and run again, lead to one table."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_core.transaction.observer import CommitPhase
from tests.support.backfill import Backfill, Delivery, months
from tests.support.soak import SEED, SOAKING
from tests.support.spark import files_below

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_core.jobs.job_result import JobResult


class Meanwhile:
    """Lets another load happen right before this one sends its first commit."""

    def __init__(self, backfill: Backfill, delivery: Delivery) -> None:
        self._backfill = backfill
        self._delivery: Delivery | None = delivery

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is CommitPhase.BEFORE_PUT and self._delivery is not None:
            delivery, self._delivery = self._delivery, None
            assert not self._backfill.load(delivery).already_applied


@pytest.fixture
def backfill(spark: SparkSession, tmp_path: Path) -> Backfill:
    return Backfill(spark, tmp_path)


def applied(results: list[JobResult]) -> int:
    return sum(len(result.commits) for result in results)


@pytest.mark.slow
def test_a_late_delivery_does_nothing_even_after_a_lost_race(backfill: Backfill) -> None:
    """One month, three deliveries: the second wins while the first is being written."""
    backfill.load(Delivery("2012-02"))
    late = backfill.attempt(Delivery("2012-01"), observer=Meanwhile(backfill, Delivery("2012-01", 2)))
    assert late.already_applied, late.error
    assert late.commits == ()
    assert backfill.found() == backfill.expected()
    assert backfill.load(Delivery("2012-01")).already_applied, "looked up before any work"
    assert backfill.load(Delivery("2012-01", 2)).already_applied

    third = backfill.attempt(Delivery("2012-01", 4), observer=Meanwhile(backfill, Delivery("2012-01", 3)))
    assert third.error is not None, "an older delivery was replaced under it, so it must look again"
    assert third.error.retryable
    assert not backfill.load(Delivery("2012-01", 4)).already_applied
    assert backfill.found() == backfill.expected()
    assert len(backfill.history()) == 4


def test_another_month_is_no_conflict(backfill: Backfill) -> None:
    """The race that a parallel backfill runs all the time: each has its own partition."""
    backfill.load(Delivery("2012-01"))
    for delivery, other in (
        (Delivery("2012-01", 2), Delivery("2012-02")),
        (Delivery("2012-03"), Delivery("2012-02", 2)),
    ):
        result = backfill.attempt(delivery, observer=Meanwhile(backfill, other))
        assert result.error is None
        assert len(result.commits) == 1
        backfill.delivered[delivery.month] = delivery.number
    assert backfill.found() == backfill.expected()
    assert backfill.retries == 0


@pytest.mark.slow
@pytest.mark.soak
def test_a_random_backfill_leads_to_the_model(backfill: Backfill, rng: random.Random) -> None:
    """Five months, some of them corrected, some loaded twice, four at once, in any order."""
    deliveries = [Delivery(month, number) for month in months(5) for number in (1, 2)]
    deliveries += rng.sample(deliveries, 4)
    rng.shuffle(deliveries)
    results = backfill.load_all(deliveries, parallel=4)
    assert backfill.delivered == dict.fromkeys(months(5), 2)
    assert backfill.found() == backfill.expected()
    assert applied(results) == len(backfill.history())
    backfill.check_every_version()


WAYS = ["forwards", "backwards", "parallel", "cleared"]


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS if SOAKING else [random.Random(SEED).choice(WAYS)])
def test_24_months_lead_to_the_model(backfill: Backfill, rng: random.Random, way: str) -> None:
    """The four ways in which a backfill of two years runs."""
    first = [Delivery(month) for month in months(24)]
    match way:
        case "backwards":
            results = backfill.load_all(first[::-1])
        case "parallel":
            results = backfill.load_all(first, parallel=4)
        case "cleared":
            corrected = [Delivery(month, number) for month in rng.sample(months(24), 8) for number in (2, 3)]
            every = [*first, *corrected, *rng.choices([*first, *corrected], k=16)]
            rng.shuffle(every)
            results = backfill.load_all(every, parallel=4)
            again = backfill.load_all(rng.sample(every, 12), parallel=2)
            assert all(result.already_applied for result in again)
        case _:
            results = backfill.load_all(first)
    assert backfill.found() == backfill.expected()
    assert {month for month, _, _ in backfill.found()} == set(months(24))
    assert applied(results) == len(backfill.history())
    if way in ("forwards", "backwards"):
        assert (applied(results), backfill.retries) == (24, 0)
    backfill.check_every_version()
    assert any(files_below(backfill.uri))
