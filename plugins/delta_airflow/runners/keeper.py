"""The small process between an Airflow task and its driver, which ensures that the driver ends with the task.

    python -I -S keeper.py PARENT_PID [--private FILE] -- COMMAND ARGUMENT...

It leads the driver's process group. When the task process has ended for any reason, it kills the whole group,
because a remaining driver could still commit. It returns the driver's exit status. If a signal ended the
driver, the status is 128 plus the signal's number, as in shells.

`--private` is a file that only the driver needs, such as a keytab. The task process deletes it when the
driver has ended. If the task process has ended first, this process deletes it.

This file is run by its path and uses only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

CHECK_SECONDS = 0.5
LOST = 128 + signal.SIGKILL


def keep(parent: int, command: Sequence[str], *, private: str | None = None) -> int:
    """Run `command` until it ends or process `parent` is no longer this process's parent."""
    received_signals: list[int] = []
    # A handler instead of SIG_IGN: the driver would inherit an ignored signal, but not a handler. The
    # group's SIGTERM is for the driver. This process continues, to report how the driver ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: received_signals.append(number))
    if os.getppid() != parent:
        _delete(private)
        return LOST
    if received_signals:
        return 128 + received_signals[-1]
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
                _end(private)
        else:
            return code if code >= 0 else 128 - code


def _end(private: str | None) -> None:
    """Kill the whole process group, including this process."""
    _delete(private)
    os.killpg(0, signal.SIGKILL)


def _delete(private: str | None) -> None:
    if private is not None:
        with contextlib.suppress(OSError):
            os.unlink(private)


if __name__ == "__main__":
    separator = sys.argv.index("--")
    options = dict(zip(sys.argv[2:separator:2], sys.argv[3:separator:2], strict=True))
    sys.exit(keep(int(sys.argv[1]), sys.argv[separator + 1 :], private=options.get("--private")))
