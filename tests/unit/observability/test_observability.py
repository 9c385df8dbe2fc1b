"""Counters."""

from __future__ import annotations

from threading import Thread

from delta_core.observability import Metrics


def test_counters_count_across_threads() -> None:
    metrics = Metrics()
    threads = [Thread(target=lambda: [metrics.increment("n") for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metrics.increment("m", 3)
    assert metrics.snapshot() == {"m": 3, "n": 2000}
    metrics.reset()
    assert metrics.value("n") == 0
