"""Killed before or after any I/O step, an operation leaves a whole table, and its retry applies it once.

The processes are real, and so is the SIGKILL. The steps are found by recording: each call of a store, each of
its requests, and in a directory each system call that changes something, where the power may fail besides. A
usual run draws some of them, `make soak-core-kill-points` runs all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.concurrency.kill_points.bench import Bench, bench
from tests.concurrency.kill_points.places import Place
from tests.concurrency.kill_points.points import pairs, sample
from tests.concurrency.kill_points.variants import VARIANTS
from tests.support.soak import SEED

pytestmark = [pytest.mark.slow]

AT_LEAST = 800
DRAWN = 14


@pytest.fixture(scope="module")
def started() -> Iterator[Bench]:
    with bench() as found:
        yield found


def test_a_killed_operation_is_whole_and_its_retry_applies_it_once(started: Bench) -> None:
    points = [point for pair in pairs() for point in started.points(*pair)]
    kills = [point for point in points if point.power is None]
    assert len(set(points)) == len(points)
    # A failure of the power is another end at the same step.
    assert len(kills) >= AT_LEAST
    assert {point.place for point in kills} == set(Place)

    drawn = sample(points, DRAWN, seed=SEED)
    faults = {str(point): found for point in drawn if (found := started.faults(point))}

    assert not faults, f"seed {SEED}: " + "\n".join(f"{point}: {found}" for point, found in faults.items())


@pytest.mark.parametrize("name", VARIANTS)
def test_a_fault_of_the_library_is_noticed(name: str, started: Bench) -> None:
    """No kill point would mean anything if a library with a fault passed."""
    variant = VARIANTS[name]
    points = started.points(variant.operation, variant.place, variant=name)
    points = [point for point in points if (point.power is not None) is variant.power]
    Random(f"{SEED} {name}").shuffle(points)
    assert any(started.faults(point, variant=name) for point in points)
