"""Killed at any I/O step, what changes a table with features leaves it whole, and its retry applies it once.

As `test_core_kill_points.py`, for UPDATE and DELETE by vectors and by rewriting with change data, the
overwriting of partitions, purge, the numbering of rows, clones and conversion; and for drops of features and
changes of tables with features. A usual run draws some points, `make soak-featured-kill-points` runs all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.concurrency.kill_points.featured import FEATURED
from tests.concurrency.kill_points.featured_bench import FeaturedBench, featured_bench
from tests.concurrency.kill_points.featured_changes import CHANGED
from tests.concurrency.kill_points.places import Place
from tests.concurrency.kill_points.points import sample
from tests.support.soak import SEED, SOAKING

pytestmark = [pytest.mark.slow]

Record = Callable[[str, object], None]
AT_LEAST = 800
DRAWN = 12
PAIRS_DRAWN, CHANGES_DRAWN = 4, 5


@pytest.fixture(scope="module")
def started() -> Iterator[FeaturedBench]:
    with featured_bench() as found:
        yield found


def test_a_killed_operation_is_whole_and_its_retry_applies_it_once(
    started: FeaturedBench, record_property: Record
) -> None:
    points = [point for name in FEATURED for place in Place for point in started.points(name, place)]
    kills = [point for point in points if point.power is None]
    assert len(set(points)) == len(points)
    assert len(kills) >= AT_LEAST

    drawn = points if SOAKING else sample(points, DRAWN, seed=SEED)
    faults = {str(point): found for point in drawn if (found := started.faults(point))}
    record_property("points", len(drawn))
    record_property("faults", len(faults))

    assert not faults, f"seed {SEED}: " + "\n".join(f"{point}: {found}" for point, found in faults.items())


def test_a_change_of_features_is_killed_as_well(started: FeaturedBench, record_property: Record) -> None:
    """A usual run draws where it looks for points, too: each needs a run that nothing disturbs."""
    pairs = [(name, place) for name in CHANGED for place in Place]
    drawn_pairs = pairs if SOAKING else Random(SEED).sample(pairs, PAIRS_DRAWN)
    points = [point for name, place in drawn_pairs for point in started.points(name, place)]
    assert len(set(points)) == len(points) >= (AT_LEAST if SOAKING else len(drawn_pairs))

    drawn = points if SOAKING else sample(points, CHANGES_DRAWN, seed=SEED)
    faults = {str(point): found for point in drawn if (found := started.faults(point))}
    record_property("points", len(drawn))
    record_property("faults", len(faults))

    assert not faults, f"seed {SEED}: " + "\n".join(f"{point}: {found}" for point, found in faults.items())


@pytest.mark.parametrize(
    ("variant", "operation", "power"),
    [
        ("the key is not looked up", "update by vectors", False),
        ("the commit comes before the data", "update by rewriting", False),
        ("data files are not flushed", "deep clone", True),
        ("the key is not looked up", "drop changeDataFeed", False),
        ("data files are not flushed", "drop columnMapping", True),
    ],
)
def test_a_fault_of_the_library_is_noticed(
    variant: str, operation: str, power: bool, started: FeaturedBench
) -> None:
    """No kill point would mean anything if a library with a fault passed."""
    points = started.points(operation, Place.LOCAL, variant=variant)
    points = [point for point in points if (point.power is not None) is power]
    Random(f"{SEED} {variant}").shuffle(points)
    assert any(started.faults(point, variant=variant) for point in points)
