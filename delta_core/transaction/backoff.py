"""Pauses between attempts.

There are two kinds of jitter for two kinds of failure. A store that is overloaded needs pauses that grow and
that do not synchronise its clients (decorrelated jitter). A lost race is over at once, so the losers only
need to be spread out (full jitter).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(slots=True, kw_only=True)
class DecorrelatedJitter:
    """Pauses after transport failures. Each is drawn between the base and three times the last pause."""

    random: Random
    base_seconds: float = 0.05
    cap_seconds: float = 5.0
    _last_seconds: float = 0.0

    def next_seconds(self) -> float:
        """The next pause, in seconds."""
        upper = max(self.base_seconds, self._last_seconds * 3)
        self._last_seconds = min(self.cap_seconds, self.random.uniform(self.base_seconds, upper))
        return self._last_seconds


@dataclass(slots=True, kw_only=True)
class FullJitter:
    """Pauses after a lost race. Each is drawn between zero and a ceiling that doubles each time.

    The ceiling stays low. Attempts that collide cost requests, but one of them gets the version. A writer
    whose pauses kept growing would never win against writers that start anew.
    """

    random: Random
    base_seconds: float = 0.02
    cap_seconds: float = 0.3
    _exponent: int = 0

    def next_seconds(self) -> float:
        """The next pause, in seconds."""
        ceiling = min(self.cap_seconds, self.base_seconds * 2**self._exponent)
        self._exponent = min(self._exponent + 1, 32)
        return self.random.uniform(0.0, ceiling)
