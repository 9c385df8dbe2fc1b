"""The job driver with a signal to itself at one of its own progress events.

    python -m tests.support.interrupting_driver EVENT_INDEX SIGNAL -- DRIVER_ARGUMENTS

Nothing in the product knows of it: a progress sink counts events and raises the signal at the chosen
one, so a kill point is exactly reproducible.
"""

from __future__ import annotations

import signal
import sys

from delta_core.execution.progress import ProgressEvent
from spark_jobs.main import main
from tests.support.own_signal import send_to_self


class SignalAt:
    """Sends this process a signal when the event of that index arrives."""

    def __init__(self, index: int, number: signal.Signals) -> None:
        self._index = index
        self._number = number
        self._seen = 0

    def emit(self, event: ProgressEvent) -> None:
        if self._seen == self._index:
            send_to_self(self._number)
        self._seen += 1


if __name__ == "__main__":
    separator = sys.argv.index("--")
    chosen, name = sys.argv[1:separator]
    sys.exit(main(sys.argv[separator + 1 :], sinks=(SignalAt(int(chosen), signal.Signals[name]),)))
