"""How long to wait between attempts.

Two kinds of trouble, two kinds of jitter: a store in distress wants ever longer pauses that do not
synchronise its clients (decorrelated jitter); a race that was lost is over at once, and only needs the
losers spread out (full jitter).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(slots=True, kw_only=True)
class DecorrelatedJitter:
    """Pauses for transport failures: each is drawn between the base and three times the last."""

    random: Random
    base_seconds: float = 0.05
    cap_seconds: float = 5.0
    _last_seconds: float = 0.0

    def next_seconds(self) -> float:
        """The next pause."""
        upper = max(self.base_seconds, self._last_seconds * 3)
        self._last_seconds = min(self.cap_seconds, self.random.uniform(self.base_seconds, upper))
        return self._last_seconds


@dataclass(slots=True, kw_only=True)
class FullJitter:
    """Pauses after a lost race: drawn between zero and a ceiling that doubles each time.

    The ceiling stays low. Attempts that collide cost requests, but one of them gets the version; who waits
    ever longer never does, beside writers that come and go.
    """

    random: Random
    base_seconds: float = 0.02
    cap_seconds: float = 0.3
    _exponent: int = 0

    def next_seconds(self) -> float:
        """The next pause."""
        ceiling = min(self.cap_seconds, self.base_seconds * 2**self._exponent)
        self._exponent = min(self._exponent + 1, 32)
        return self.random.uniform(0.0, ceiling)
