"""The clock as a dependency that callers pass in.

No other module reads the system clock, so tests and simulations control the time. Timestamps are epoch
milliseconds; durations are seconds on a monotonic clock.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The clock operations that the library uses."""

    def now_ms(self) -> int:
        """Wall-clock time in epoch milliseconds."""
        ...

    def monotonic_seconds(self) -> float:
        """A clock that never goes back, for durations."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block for `seconds`."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_seconds(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only when `sleep` or `advance` is called."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = float(now_ms)

    def now_ms(self) -> int:
        return int(self._now_ms)

    def monotonic_seconds(self) -> float:
        return self._now_ms / 1000

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self._now_ms += seconds * 1000


SYSTEM_CLOCK = SystemClock()
