"""Counters of commits: plain numbers of this process, which a program exports in any format."""

from __future__ import annotations

import threading
from collections import Counter

from delta_core.forks import renew_lock_in_children

COMMIT_RECOVERED_TOTAL = "commit_recovered_total"
"""Commits whose response was lost and that were found in the log by their transaction id."""

COMMIT_UNKNOWN_TOTAL = "commit_unknown_total"
"""Commits whose outcome could not be determined."""

COMMIT_SPURIOUS_EXISTS_TOTAL = "commit_spurious_exists_total"
"""Times a store reported that a version exists, but the version could not be read."""

COMMIT_CONFLICT_TOTAL = "commit_conflict_total"
"""Commits that failed because a concurrent commit conflicts."""

COMMIT_REBASE_TOTAL = "commit_rebase_total"
"""Times a commit was rebased on another writer's version."""

COMMIT_TOTAL = "commit_total"
"""Commits that succeeded."""

CHECKPOINT_FAILED_TOTAL = "checkpoint_failed_total"
"""Checkpoints that could not be written after a commit. The commit itself is valid."""


class Metrics:
    """Named counters of one process. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    def increment(self, name: str, amount: int = 1) -> None:
        """Add `amount` to a counter. A new counter starts at zero."""
        with self._lock:
            self._counts[name] += amount

    def value(self, name: str) -> int:
        """The counter's value; zero when it was never incremented."""
        with self._lock:
            return self._counts[name]

    def snapshot(self) -> dict[str, int]:
        """All counters by name, sorted."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    def reset(self) -> None:
        """Set every counter back to zero."""
        with self._lock:
            self._counts.clear()


METRICS = Metrics()
"""The process's counters."""
