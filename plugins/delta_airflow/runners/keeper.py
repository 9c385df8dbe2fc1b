"""The small process between an Airflow task and its driver: the driver never outlives the task.

    python -I -S keeper.py PARENT_PID -- COMMAND ARGUMENT...

It leads the driver's process group. When the task process is gone, however it went, the whole group is
killed; a driver left behind could still commit. It passes the driver's exit status on, 128 plus the
signal's number for a driver that a signal ended, as shells do.

This file is run by its path and uses the standard library alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

CHECK_SECONDS = 0.5


def keep(parent: int, command: Sequence[str]) -> int:
    """Run `command` until it ends or process `parent` is no longer this process's parent."""
    # A handler, not SIG_IGN: the driver would inherit an ignored signal, but not a handled one. The
    # group's SIGTERM is meant for the driver; this process stays to report how it ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        driver = subprocess.Popen(command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    while True:
        try:
            code = driver.wait(timeout=CHECK_SECONDS)
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                os.killpg(0, signal.SIGKILL)
        else:
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), sys.argv[3:]))
