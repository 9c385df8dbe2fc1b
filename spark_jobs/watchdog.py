"""A watchdog that ends a driver when its parent process ends, so that an orphaned driver cannot commit.

Killing `spark-submit` kills the JVM, but not a Python driver that is between two calls to the JVM.
"""

from __future__ import annotations

import os
import threading
import time

ORPHANED_EXIT_CODE = 143


def exit_with_parent(
    *, interval_seconds: float = 1.0, exit_code: int = ORPHANED_EXIT_CODE
) -> threading.Thread:
    """Start a thread that ends this process at once, without clean-up, when its parent has ended.

    The job's data files remain as orphan files, which a vacuum deletes.

    Returns:
        The watching daemon thread.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval_seconds)
        os._exit(exit_code)

    thread = threading.Thread(target=watch, daemon=True, name="parent-watchdog")
    thread.start()
    return thread
