"""The small process between an Airflow task and its driver, which ensures that the driver ends with the task.

    python -I -S keeper.py PARENT_PID [--host SOCKET] [--private FILE] -- COMMAND ARGUMENT...

It leads the driver's process group. When the task process has ended for any reason, it kills the whole group,
because a remaining driver could still commit. It returns the driver's exit status. If a signal ended the
driver, the status is 128 plus the signal's number, as in shells.

With `--host` it asks the driver host at that socket to fork the driver. That driver has its own process
group: this process forwards signals to it, and the host kills the driver when this process has ended. If no
host of the same user answers, or the host refuses, this process starts the driver itself.

`--private` is a file that only the driver needs, such as a keytab. The task process deletes it when the
driver has ended. If the task process has ended first, this process deletes it.

This file is run by its path and uses only the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

CHECK_SECONDS = 0.5
HOST_SECONDS = 10.0
LOST = 128 + signal.SIGKILL


@dataclass
class HostedDriver:
    """A driver that a host has forked.

    Attributes:
        connection: the connection to the host. When it closes, the host ends the driver.
        process_id: the process id of the driver.
        answer: the bytes that the host has sent since the start.
    """

    connection: socket.socket
    process_id: int
    answer: bytes


def keep(parent: int, command: Sequence[str], *, host: str | None = None, private: str | None = None) -> int:
    """Run `command` until it ends or process `parent` is no longer this process's parent."""
    received_signals: list[int] = []
    # A handler instead of SIG_IGN: the driver would inherit an ignored signal, but not a handler. The
    # group's SIGTERM is for the driver. This process continues, to report how the driver ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: received_signals.append(number))
    if host is not None:
        hosted = ask(host, command)
        if hosted is not None:
            with hosted.connection:
                return follow(hosted, parent, received_signals, private=private)
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


def ask(host: str, command: Sequence[str]) -> HostedDriver | None:
    """Ask the host at this socket to fork a driver; None if it does not."""
    umask = os.umask(0)
    os.umask(umask)
    request = {
        "command": list(command),
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "umask": umask,
    }
    line = json.dumps(request).encode() + b"\n"
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(HOST_SECONDS)
        connection.connect(host)
        if not _is_own(connection):
            raise PermissionError("it belongs to another user")
        sent = socket.send_fds(connection, [line], [1, 2])
        if sent < len(line):
            connection.sendall(line[sent:])
        answer = b""
        while b"\n" not in answer:
            received = connection.recv(4096)
            if not received:
                break
            answer += received
    except OSError as error:
        print(f"No driver host answers at {host} ({error}). Starting a new driver process.", file=sys.stderr)
    else:
        first, _, rest = answer.partition(b"\n")
        word, _, number = first.partition(b" ")
        if word == b"started":
            return HostedDriver(connection, int(number), rest)
        reason = first.decode(errors="replace") or "no answer"
        print(f"The driver host refused ({reason}). Starting a new driver process.", file=sys.stderr)
    connection.close()
    return None


def _is_own(connection: socket.socket) -> bool:
    """Whether the peer process, which receives the driver's environment, belongs to the same user.

    True on systems without SO_PEERCRED, which cannot report the user.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.geteuid())


def follow(
    driver: HostedDriver, parent: int, received_signals: Sequence[int], *, private: str | None = None
) -> int:
    """Wait for the driver's end, and forward the signals that this process receives."""
    connection, answer = driver.connection, driver.answer
    connection.settimeout(CHECK_SECONDS / 5)
    forwarded = 0
    while True:
        for line in answer.split(b"\n")[:-1]:
            word, _, code = line.partition(b" ")
            if word == b"exit":
                return int(code)
        if os.getppid() != parent:
            _end(private)
        try:
            for number in received_signals[forwarded:]:
                connection.sendall(f"signal {number}\n".encode())
                forwarded += 1
            received = connection.recv(4096)
        except TimeoutError:
            continue
        except OSError:
            received = b""
        answer += received
        if not received:
            return _without_host(driver.process_id, parent, private)


def _without_host(process_id: int, parent: int, private: str | None) -> int:
    """Wait until a driver without its host has ended, so that the task is retried only afterwards."""
    give_up = time.monotonic() + HOST_SECONDS
    # On a system that does not reap orphaned processes, an ended driver stays listed as a zombie.
    while _is_there(process_id) and time.monotonic() < give_up:
        if os.getppid() != parent:
            _end(private)
        time.sleep(CHECK_SECONDS / 5)
    print("The driver host has ended, and the driver with it.", file=sys.stderr)
    return LOST


def _end(private: str | None) -> None:
    """Kill the whole process group, including this process."""
    _delete(private)
    os.killpg(0, signal.SIGKILL)


def _delete(private: str | None) -> None:
    if private is not None:
        with contextlib.suppress(OSError):
            os.unlink(private)


def _is_there(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # The process id now belongs to another user's process.
    return True


if __name__ == "__main__":
    separator = sys.argv.index("--")
    options = dict(zip(sys.argv[2:separator:2], sys.argv[3:separator:2], strict=True))
    status = keep(
        int(sys.argv[1]),
        sys.argv[separator + 1 :],
        host=options.get("--host"),
        private=options.get("--private"),
    )
    sys.exit(status)
