"""`spark_jobs.main` that sends itself a signal at a progress event.

    python -m tests.support.driver_main --at data.written --signal KILL -- --spec S --result R

The signal comes from inside, so the driver is stopped exactly there and not a moment later.
"""

from __future__ import annotations

from spark_jobs.watchdog import exit_with_parent

if __name__ == "__main__":
    exit_with_parent()

import argparse
import signal
import sys

from delta_core.execution.progress import ProgressEvent
from spark_jobs.main import main
from tests.support.own_signal import send_to_self


class SignalAt:
    """Sends this process a signal when the n-th event of a name comes."""

    def __init__(self, name: str, number: signal.Signals, occurrence: int) -> None:
        self._name = name
        self._signal = number
        self._left = occurrence

    def emit(self, event: ProgressEvent) -> None:
        if event.name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            send_to_self(self._signal)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", required=True)
    parser.add_argument("--signal", default="KILL")
    parser.add_argument("--occurrence", type=int, default=1)
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    sink = SignalAt(options.at, signal.Signals[f"SIG{options.signal}"], options.occurrence)
    sys.exit(main([part for part in options.rest if part != "--"], sinks=[sink]))
