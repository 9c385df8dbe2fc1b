"""The ratio that every benchmark reports."""

from __future__ import annotations

import pytest

from benchmarks.statistics import paired_ratio


def test_a_machine_that_slows_down_halfway_does_not_move_a_paired_ratio() -> None:
    theirs = [1.0, 1.0, 1.0, 1.0, 10.0, 10.0, 10.0]
    ratio = paired_ratio([0.5 * seconds for seconds in theirs], theirs)
    assert ratio.median == pytest.approx(0.5)
    assert (ratio.low, ratio.high) == (pytest.approx(0.5), pytest.approx(0.5))
    assert ratio.pairs == 7


def test_the_interval_holds_the_median_and_widens_with_noise() -> None:
    quiet = paired_ratio([1.0, 1.1, 0.9, 1.0, 1.0, 1.1, 0.9], [1.0] * 7)
    noisy = paired_ratio([0.2, 3.0, 0.9, 1.0, 2.0, 0.4, 1.5], [1.0] * 7)
    for ratio in (quiet, noisy):
        assert ratio.low <= ratio.median <= ratio.high
    assert noisy.high - noisy.low > quiet.high - quiet.low


def test_series_that_are_not_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired_ratio([1.0, 2.0], [1.0])
