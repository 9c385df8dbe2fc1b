"""A signal that a process sends to itself, done when the call returns."""

from __future__ import annotations

import signal
import threading


def send_to_self(number: signal.Signals) -> None:
    """Send the signal to the thread that calls.

    A signal for the whole process may go to another of its threads. SIGSTOP stops the caller only after
    that thread has run, and a driver commits in that time.
    """
    signal.pthread_kill(threading.get_ident(), number)
