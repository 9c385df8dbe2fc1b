"""A local store that has a clock of its own, which no machine that uses it has."""

from __future__ import annotations

import os
from pathlib import Path

from delta_core.clock import ManualClock
from delta_core.storage.local import LocalLogStore

STORE_BEGAN_MS = 1_900_000_000_000
"""Far from what the machines of a test think."""


class TimedStore(LocalLogStore):
    """Stamps what is written with the time of `store_clock`; shared between the machines of a test."""

    def __init__(self, root: Path, store_clock: ManualClock) -> None:
        super().__init__(root)
        self.store_clock = store_clock

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        self._stamp(path)

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        self._stamp(path)

    def _stamp(self, path: str) -> None:
        at_ns = self.store_clock.now_ms() * 1_000_000
        os.utime(self.root / path, ns=(at_ns, at_ns))


class Machines:
    """A store and the clocks of the machines that use it; they tell different times and run alike."""

    def __init__(self, root: Path, *, machines: int = 2) -> None:
        self.store_clock = ManualClock(STORE_BEGAN_MS)
        self.store = TimedStore(root, self.store_clock)
        # One is years behind, one ahead, and their monotonic clocks began at other times.
        self.clocks = [
            ManualClock(1_000_000_000_000 + number * 777_777_777_777) for number in range(machines)
        ]

    def pass_time(self, seconds: float) -> None:
        """For everybody."""
        self.store_clock.advance(seconds)
        for clock in self.clocks:
            clock.advance(seconds)
