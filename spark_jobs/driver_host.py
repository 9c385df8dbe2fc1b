"""A long-lived process that has done a driver's imports, and forks one driver per job.

`python -m spark_jobs.driver_host --socket PATH` runs one in the foreground. A driver that is started anew
spends most of a small job's time on importing pyspark, pandas and Great Expectations; one that is forked
here begins with its work. Nothing is shared between drivers but what was imported: each has its own
environment, directory, output and Spark session.

Who asks is the runner's `keeper`, over a Unix socket that only the host's own user may use: one JSON line
({"command", "environment", "directory", "umask"}) with standard output and error as file descriptors. The
answers are lines, too: `started PID`, at the end `exit CODE`, or `refused REASON`, upon which the keeper
starts the driver itself. `signal N` from the keeper goes to the driver. A connection that ends ends the
driver.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.util
import logging
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from spark_jobs.driver_requests import (
    DRIVER,
    OUTPUTS,
    REQUEST_BYTES,
    DriverRequest,
    code_on_disk,
    listen,
    parse_request,
    require_fitting,
    require_same_user,
    require_waiting,
)
from spark_jobs.installed_spark import check_installed
from spark_jobs.watchdog import exit_with_parent

_LOGGER = logging.getLogger(__name__)

_PRELOADED = ("spark_jobs.main", "pyspark.sql.connect.session", "pandas", "pyarrow.parquet")
_REQUEST_SECONDS = 5.0
_PASSED_ON = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
_HANDLED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class _Client:
    """Whoever has connected: first the request is read, then there is a driver.

    Attributes:
        descriptors: came with the request; closed here once the driver has them.
        read_until: when an unfinished request is given up, on the monotonic clock.
    """

    connection: socket.socket
    read_until: float
    received: bytes = b""
    descriptors: list[int] = field(default_factory=list)
    process_id: int | None = None


class DriverHost:
    """Listens on a socket and forks drivers until it is told to end; use as a context manager.

    In a forked driver `serve` raises SystemExit with the driver's exit code, so whatever calls it must let
    that pass.

    Args:
        path: the socket's; one that is there and answers nobody is replaced.
        run: what a driver does with its arguments, to its exit code; the driver's program when left out.

    Raises:
        ConfigurationError: the socket cannot be made, or another host answers there.
    """

    def __init__(
        self, path: Path, *, run: Callable[[list[str]], int] | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._run = run or _run_job
        self._clock = clock
        self._code = code_on_disk()
        self._clients: dict[int, _Client] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = listen(path)
        self._path = path
        self._made = path.stat().st_ino
        self._woken, self._wake = socket.socketpair()
        self._process_id = os.getpid()
        self._ended = False

    def __enter__(self) -> DriverHost:
        for end in (self._woken, self._wake, self._listener):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        return self

    def __exit__(self, *exc: object) -> None:
        if os.getpid() != self._process_id:
            return  # a driver that ends
        for client in self._clients.values():
            if client.process_id is not None:
                _signal_group(client.process_id, signal.SIGKILL)
        self._listener.close()
        with contextlib.suppress(OSError):
            # Another host may have taken the path over.
            if self._path.stat().st_ino == self._made:
                self._path.unlink()

    def serve(self) -> None:
        """Fork drivers and report their ends; returns after SIGTERM or SIGINT.

        Raises:
            SystemExit: in a forked driver, at its end.
        """
        while not self._ended:
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    with contextlib.suppress(BlockingIOError):
                        self._woken.recv(4096)
                elif (client := self._clients.get(key.fd)) is not None:
                    self._hear(client)
            self._give_up_late_requests()
            self._report_ended()

    def _end(self, *_: object) -> None:
        self._ended = True

    def _patience(self) -> float | None:
        waiting = [c.read_until for c in self._clients.values() if c.process_id is None]
        return max(min(waiting) - self._clock.monotonic_seconds(), 0.0) if waiting else None

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            # Out of file descriptors, say; whoever asks comes again or starts the driver anew.
            _LOGGER.warning("a connection could not be accepted: %s", error)
            self._clock.sleep(0.1)
            return
        connection.setblocking(False)
        until = self._clock.monotonic_seconds() + _REQUEST_SECONDS
        self._clients[connection.fileno()] = _Client(connection=connection, read_until=until)
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, client: _Client) -> None:
        try:
            received, descriptors, _, _ = socket.recv_fds(client.connection, 65536, OUTPUTS)
        except BlockingIOError:
            return
        except OSError:
            received, descriptors = b"", []
        client.descriptors.extend(descriptors)
        if client.process_id is not None or len(client.descriptors) > OUTPUTS:
            _close(client.descriptors[OUTPUTS:] if client.process_id is None else client.descriptors)
            del client.descriptors[OUTPUTS:]
        if not received:
            # Nobody waits for this driver any more, so it must not go on to commit.
            if client.process_id is not None:
                _signal_group(client.process_id, signal.SIGKILL)
                self._selector.unregister(client.connection)
            else:
                self._forget(client)
            return
        client.received += received
        if client.process_id is not None:
            self._obey(client)
        elif len(client.received) > REQUEST_BYTES:
            self._refuse(client, "the request is too long")
        elif client.received.endswith(b"\n"):
            self._answer(client)

    def _obey(self, client: _Client) -> None:
        *lines, client.received = client.received.split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            wanted = next((one for one in _PASSED_ON if number == str(int(one)).encode()), None)
            if word == b"signal" and wanted is not None and client.process_id is not None:
                _signal_group(client.process_id, wanted)
        client.received = client.received[-64:]

    def _answer(self, client: _Client) -> None:
        try:
            request = parse_request(client.received, descriptors=len(client.descriptors))
            require_same_user(client.connection)
            require_fitting(request, code=self._code)
            require_waiting(client.connection)
        except ConfigurationError as error:
            self._refuse(client, str(error))
            return
        except Exception as error:  # the other drivers must not end with the host
            _LOGGER.exception("a request could not be looked into")
            self._refuse(client, f"the request could not be looked into: {error}")
            return
        client.received = b""
        sys.stdout.flush()
        # Until the driver has handlers of its own, a signal for it must wait, not meet the host's.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            process_id = os.fork()
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
            self._refuse(client, f"no process can be forked: {error}")
            return
        if process_id == 0:
            self._become_driver(request, client)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        client.process_id = process_id
        _close(client.descriptors)
        # Who has gone meanwhile is noticed by the selector, which ends the driver.
        with contextlib.suppress(OSError):
            client.connection.sendall(f"started {process_id}\n".encode())

    def _refuse(self, client: _Client, reason: str) -> None:
        _LOGGER.warning("a request was refused: %s", reason)
        with contextlib.suppress(OSError):
            client.connection.sendall(f"refused {' '.join(reason.split())}\n".encode())
        self._forget(client)

    def _forget(self, client: _Client) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.connection)
        self._clients.pop(client.connection.fileno(), None)
        _close(client.descriptors)
        client.connection.close()

    def _give_up_late_requests(self) -> None:
        now = self._clock.monotonic_seconds()
        for client in list(self._clients.values()):
            if client.process_id is None and client.read_until <= now:
                self._refuse(client, "the request did not come in time")

    def _report_ended(self) -> None:
        by_process = {c.process_id: c for c in self._clients.values() if c.process_id is not None}
        while by_process:
            process_id, status = os.waitpid(-1, os.WNOHANG)
            if process_id == 0:
                return
            client = by_process.pop(process_id, None)
            if client is None:
                continue
            # What the driver has started and left behind must not go on either.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process_id, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                client.connection.sendall(f"exit {code if code >= 0 else 128 - code}\n".encode())
            self._forget(client)

    def _become_driver(self, request: DriverRequest, client: _Client) -> NoReturn:
        """The forked process's whole life; it ends as any program does, by leaving its main module."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        exit_with_parent(parent=self._process_id)
        # A connection that a driver holds open would never end.
        for held in (self._listener, self._woken, self._wake):
            held.close()
        for other in self._clients.values():
            other.connection.close()
            if other is not client:
                _close(other.descriptors)
        self._selector.close()
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for target, descriptor in enumerate(client.descriptors, start=1):
            os.dup2(descriptor, target)
        _close(client.descriptors)
        for stream in (sys.stdout, sys.stderr):
            # A driver that is killed has said what it had printed.
            stream.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
        os.environ.clear()
        os.environ.update(request.environment)
        time.tzset()
        os.umask(request.umask)
        os.chdir(request.directory)
        # The host's own lines went elsewhere, and under other rules.
        for handler in logging.getLogger().handlers[:]:
            logging.getLogger().removeHandler(handler)
        arguments = request.command[3:]
        sys.argv = [DRIVER[1], *arguments]
        raise SystemExit(self._run(arguments))


def _run_job(arguments: list[str]) -> int:
    from spark_jobs import main

    return main.main(arguments)


def preload() -> list[str]:
    """Import what drivers import; returns the names. Great Expectations only where it is installed.

    Raises:
        ConfigurationError: pyspark is not installed, or an import has started a Python thread.
    """
    check_installed(with_jvm=False)
    names = list(_PRELOADED)
    for name in names:
        importlib.import_module(name)
    if importlib.util.find_spec("great_expectations") is not None:
        from spark_jobs.quality.expectations_library import require_library

        require_library()
        names.append("great_expectations")
    if threading.active_count() > 1:
        started = ", ".join(sorted(thread.name for thread in threading.enumerate()))
        raise ConfigurationError("An import has started a thread, which a fork would lose.", cause=started)
    # What is imported stays: a driver's collector, which also runs at its end, need not go through it.
    gc.collect()
    gc.freeze()
    return names


def _close(descriptors: list[int]) -> None:
    while descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptors.pop())


def _signal_group(process_id: int, number: int) -> None:
    # The group is the driver's own; between its fork and its setpgid there is only the process.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.getpgid(process_id) == process_id:
            os.killpg(process_id, number)
        else:
            os.kill(process_id, number)


def main(argv: Sequence[str] | None = None) -> int:
    """Host drivers until this process is told to end."""
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.driver_host", description=main.__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="a Unix socket's absolute path")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        names = preload()
        host = DriverHost(arguments.socket)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    with host:
        print(f"drivers are forked at {arguments.socket}; loaded: {', '.join(names)}", flush=True)
        host.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
