"""The small process between an Airflow task and its driver: the driver never outlives the task.

    python -I -S keeper.py PARENT_PID [--host SOCKET] [--private FILE] -- COMMAND ARGUMENT...

It leads the driver's process group. When the task process is gone, however it went, the whole group is
killed; a driver left behind could still commit. It passes the driver's exit status on, 128 plus the
signal's number for a driver that a signal ended, as shells do.

With `--host` it asks the driver host at that socket to fork the driver, which then is in a group of its
own: signals are passed on, and the host kills the driver once this process is gone. Where no host of the
same user answers, or the host refuses, the driver is started here.

The file that `--private` names is the driver's alone, such as a keytab. The task process deletes it when the
driver has ended; where that process is gone, this one does.

This file is run by its path and uses the standard library alone.
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
        connection: to the host; the driver ends with it.
        process_id: the driver's.
        answer: what the host has said since.
    """

    connection: socket.socket
    process_id: int
    answer: bytes


def keep(parent: int, command: Sequence[str], *, host: str | None = None, private: str | None = None) -> int:
    """Run `command` until it ends or process `parent` is no longer this process's parent."""
    told: list[int] = []
    # A handler, not SIG_IGN: the driver would inherit an ignored signal, but not a handled one. The
    # group's SIGTERM is meant for the driver; this process stays to report how it ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: told.append(number))
    if host is not None:
        hosted = ask(host, command)
        if hosted is not None:
            with hosted.connection:
                return follow(hosted, parent, told, private=private)
    if os.getppid() != parent:
        _delete(private)
        return LOST
    if told:
        return 128 + told[-1]
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
    """The driver that the host at this socket has forked; None when it has not."""
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
            raise PermissionError("it is another user's")
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
        print(f"No driver host answers at {host} ({error}): starting the driver anew", file=sys.stderr)
    else:
        first, _, rest = answer.partition(b"\n")
        word, _, number = first.partition(b" ")
        if word == b"started":
            return HostedDriver(connection, int(number), rest)
        reason = first.decode(errors="replace") or "no answer"
        print(f"The driver host gives no driver ({reason}): starting it anew", file=sys.stderr)
    connection.close()
    return None


def _is_own(connection: socket.socket) -> bool:
    """Whether the other end, which gets the driver's environment, is this user's. Where the system tells."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    given = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return bool(struct.unpack("3i", given)[1] == os.geteuid())


def follow(driver: HostedDriver, parent: int, told: Sequence[int], *, private: str | None = None) -> int:
    """Wait for the driver's end; pass on what this process is told."""
    connection, answer = driver.connection, driver.answer
    connection.settimeout(CHECK_SECONDS / 5)
    passed_on = 0
    while True:
        for line in answer.split(b"\n")[:-1]:
            word, _, code = line.partition(b" ")
            if word == b"exit":
                return int(code)
        if os.getppid() != parent:
            _end(private)
        try:
            for number in told[passed_on:]:
                connection.sendall(f"signal {number}\n".encode())
                passed_on += 1
            received = connection.recv(4096)
        except TimeoutError:
            continue
        except OSError:
            received = b""
        answer += received
        if not received:
            return _without_host(driver.process_id, parent, private)


def _without_host(process_id: int, parent: int, private: str | None) -> int:
    """The host is gone, so the driver ends by itself; only then should its task be tried again."""
    give_up = time.monotonic() + HOST_SECONDS
    # Where nobody reaps orphans, one that has ended stays listed.
    while _is_there(process_id) and time.monotonic() < give_up:
        if os.getppid() != parent:
            _end(private)
        time.sleep(CHECK_SECONDS / 5)
    print("The driver host is gone, and the driver with it", file=sys.stderr)
    return LOST


def _end(private: str | None) -> None:
    """End the whole group, this process included."""
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
        return False  # another user's: the number was given anew
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
