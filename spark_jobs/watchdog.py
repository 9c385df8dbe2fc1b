"""A driver that outlives whoever started it could still commit; this ends it.

Killing `spark-submit` kills the JVM, not a Python driver that is between two calls to it.
"""

from __future__ import annotations

import os
import threading
import time

ORPHANED_EXIT_CODE = 143


def exit_with_parent(
    *, interval_seconds: float = 1.0, exit_code: int = ORPHANED_EXIT_CODE, parent: int | None = None
) -> threading.Thread:
    """End this process at once, without clean-up, when its parent has ended.

    Data files of a job that dies so stay as unreferenced files; vacuum removes them.

    Args:
        parent: its process id, for a caller that knows it; else whoever is the parent now.

    Returns:
        The watching thread, a daemon.
    """
    expected = os.getppid() if parent is None else parent

    def watch() -> None:
        while os.getppid() == expected:
            time.sleep(interval_seconds)
        os._exit(exit_code)

    thread = threading.Thread(target=watch, daemon=True, name="parent-watchdog")
    thread.start()
    return thread
