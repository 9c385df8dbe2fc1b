"""The small process between an Airflow task and its driver: the driver never outlives the task.

    python -I -S keeper.py PARENT_PID [--host SOCKET] -- COMMAND ARGUMENT...

It leads the driver's process group. When the task process is gone, however it went, the whole group is
killed; a driver left behind could still commit. It passes the driver's exit status on, 128 plus the
signal's number for a driver that a signal ended, as shells do.

With `--host` it asks the driver host at that socket to fork the driver, which then is in a group of its
own: signals are passed on, and the host kills the driver once this process is gone. Where no host answers,
or the host refuses, the driver is started here.

This file is run by its path and uses the standard library alone.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

CHECK_SECONDS = 0.5
HOST_SECONDS = 10.0
LOST = 128 + signal.SIGKILL


def keep(parent: int, command: Sequence[str], *, host: str | None = None) -> int:
    """Run `command` until it ends or process `parent` is no longer this process's parent."""
    told: list[int] = []
    # A handler, not SIG_IGN: the driver would inherit an ignored signal, but not a handled one. The
    # group's SIGTERM is meant for the driver; this process stays to report how it ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: told.append(number))
    if host is not None:
        connection, answer = ask(host, command)
        if connection is not None:
            with connection:
                return follow(connection, answer, parent, told)
    try:
        driver = subprocess.Popen(command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    if told:
        # It came while the host was asked, before there was a driver in this group to receive it.
        driver.send_signal(told[-1])
    while True:
        try:
            code = driver.wait(timeout=CHECK_SECONDS)
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                os.killpg(0, signal.SIGKILL)
        else:
            return code if code >= 0 else 128 - code


def ask(host: str, command: Sequence[str]) -> tuple[socket.socket | None, bytes]:
    """A connection to the host that has started the driver, and what it said since; None when none did."""
    request = {"command": list(command), "environment": dict(os.environ), "directory": os.getcwd()}
    line = json.dumps(request).encode() + b"\n"
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(HOST_SECONDS)
        connection.connect(host)
        sent = socket.send_fds(connection, [line], [1, 2])
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
        if first.startswith(b"started "):
            return connection, rest
        reason = first.decode(errors="replace") or "no answer"
        print(f"The driver host gives no driver ({reason}): starting it anew", file=sys.stderr)
    connection.close()
    return None, b""


def follow(connection: socket.socket, answer: bytes, parent: int, told: list[int]) -> int:
    """Wait for the end of the host's driver; pass on what this process is told."""
    connection.settimeout(CHECK_SECONDS / 5)
    passed_on = 0
    while True:
        for line in answer.split(b"\n")[:-1]:
            word, _, code = line.partition(b" ")
            if word == b"exit":
                return int(code)
        if os.getppid() != parent:
            os.killpg(0, signal.SIGKILL)
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
            print("The driver host is gone, and the driver with it", file=sys.stderr)
            return LOST


if __name__ == "__main__":
    separator = sys.argv.index("--")
    options = dict(zip(sys.argv[2:separator:2], sys.argv[3:separator:2], strict=True))
    sys.exit(keep(int(sys.argv[1]), sys.argv[separator + 1 :], host=options.get("--host")))
