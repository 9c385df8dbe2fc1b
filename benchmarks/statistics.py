"""The one statistic reported: a ratio of paired times, with an interval."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Median of ours/theirs over alternating pairs, with its 90 % bootstrap interval."""

    median: float
    low: float
    high: float
    pairs: int

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.median:.2f}x [{self.low:.2f}, {self.high:.2f}]"


def paired_ratio(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0) -> Ratio:
    """The ratio of two equally long series measured pair by pair.

    The interval resamples whole pairs, so a machine that slows down for a while widens it honestly.
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    generator = random.Random(seed)
    medians = sorted(median(generator.choices(ratios, k=len(ratios))) for _ in range(2000))
    return Ratio(
        median=median(ratios),
        low=medians[int(0.05 * len(medians))],
        high=medians[int(0.95 * len(medians)) - 1],
        pairs=len(ratios),
    )
