"""A long-lived process that has imported a driver's modules, and forks one driver per job.

`python -m spark_jobs.driver_host --socket PATH` runs a host in the foreground. A newly started driver spends
most of a small job's time on imports of pyspark, pandas and Great Expectations. A forked driver starts to
work at once. Drivers share only the imported modules. Each has its own environment, directory, output and
Spark session.

The client is the runner's `keeper`. It connects to a Unix socket that only the host's user may use. It sends
one JSON line ({"command", "environment", "directory", "umask"}) with standard output and error as file
descriptors. The answers are also lines: `started PID`, then `exit CODE` at the end; or `refused REASON`, and
then the keeper itself starts the driver. The host forwards `signal N` from the keeper to the driver. When the
connection ends, the host ends the driver.
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
_FORWARDED_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
_HANDLED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class _Client:
    """A connected client: first its request is read, then it has a driver.

    Attributes:
        descriptors: file descriptors of the request; the host closes them after the fork.
        read_until: the deadline for reading the request, on the monotonic clock.
    """

    connection: socket.socket
    read_until: float
    received: bytes = b""
    descriptors: list[int] = field(default_factory=list)
    process_id: int | None = None


class DriverHost:
    """Listens on a socket and forks drivers until a signal ends it. Use it as a context manager.

    In a forked driver `serve` raises SystemExit with the driver's exit code. The caller of `serve` must not
    catch it.

    Args:
        path: the socket's path. An existing socket that does not answer is replaced.
        run: the driver's main function, from arguments to exit code; by default the driver's program.

    Raises:
        ConfigurationError: the socket cannot be created, or another host answers at the path.
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
        self._socket_inode = path.stat().st_ino
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
            return  # this process is a forked driver
        for client in self._clients.values():
            if client.process_id is not None:
                _signal_group(client.process_id, signal.SIGKILL)
        self._listener.close()
        with contextlib.suppress(OSError):
            # Another host may have replaced the socket.
            if self._path.stat().st_ino == self._socket_inode:
                self._path.unlink()

    def serve(self) -> None:
        """Fork drivers and report their exit codes. Returns after SIGTERM or SIGINT.

        Raises:
            SystemExit: in a forked driver, at its end.
        """
        while not self._ended:
            for key, _ in self._selector.select(self._select_timeout()):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    with contextlib.suppress(BlockingIOError):
                        self._woken.recv(4096)
                elif (client := self._clients.get(key.fd)) is not None:
                    self._receive(client)
            self._give_up_late_requests()
            self._report_ended()

    def _end(self, *_: object) -> None:
        self._ended = True

    def _select_timeout(self) -> float | None:
        waiting = [c.read_until for c in self._clients.values() if c.process_id is None]
        return max(min(waiting) - self._clock.monotonic_seconds(), 0.0) if waiting else None

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            # For example, no file descriptors are left. The client retries or starts the driver itself.
            _LOGGER.warning("A connection could not be accepted: %s", error)
            self._clock.sleep(0.1)
            return
        connection.setblocking(False)
        until = self._clock.monotonic_seconds() + _REQUEST_SECONDS
        self._clients[connection.fileno()] = _Client(connection=connection, read_until=until)
        self._selector.register(connection, selectors.EVENT_READ)

    def _receive(self, client: _Client) -> None:
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
            # The client has disconnected, so the driver must not continue and commit.
            if client.process_id is not None:
                _signal_group(client.process_id, signal.SIGKILL)
                self._selector.unregister(client.connection)
            else:
                self._forget(client)
            return
        client.received += received
        if client.process_id is not None:
            self._forward_signals(client)
        elif len(client.received) > REQUEST_BYTES:
            self._refuse(client, "the request is too long")
        elif client.received.endswith(b"\n"):
            self._answer(client)

    def _forward_signals(self, client: _Client) -> None:
        *lines, client.received = client.received.split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            forwarded = next(
                (candidate for candidate in _FORWARDED_SIGNALS if number == str(int(candidate)).encode()),
                None,
            )
            if word == b"signal" and forwarded is not None and client.process_id is not None:
                _signal_group(client.process_id, forwarded)
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
            _LOGGER.exception("A request could not be checked.")
            self._refuse(client, f"the request could not be checked: {error}")
            return
        client.received = b""
        sys.stdout.flush()
        # Signals are blocked until the driver has set its own handlers, so that the host's handlers do not
        # run.
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
        # If the client has disconnected, the selector reports that, and the host ends the driver.
        with contextlib.suppress(OSError):
            client.connection.sendall(f"started {process_id}\n".encode())

    def _refuse(self, client: _Client, reason: str) -> None:
        _LOGGER.warning("A request was refused: %s", reason)
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
            # Processes that the driver has started must not continue either.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process_id, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                client.connection.sendall(f"exit {code if code >= 0 else 128 - code}\n".encode())
            self._forget(client)

    def _become_driver(self, request: DriverRequest, client: _Client) -> NoReturn:
        """Set up the forked process and run the driver. The process ends by leaving its main module."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        exit_with_parent(parent=self._process_id)
        # A connection that a driver keeps open would never end.
        for shared in (self._listener, self._woken, self._wake):
            shared.close()
        for other in self._clients.values():
            other.connection.close()
            if other is not client:
                _close(other.descriptors)
        self._selector.close()
        with open(os.devnull, "rb") as devnull:
            os.dup2(devnull.fileno(), 0)
        for target, descriptor in enumerate(client.descriptors, start=1):
            os.dup2(descriptor, target)
        _close(client.descriptors)
        for stream in (sys.stdout, sys.stderr):
            # Write through, so that the output of a killed driver is complete.
            stream.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
        os.environ.clear()
        os.environ.update(request.environment)
        time.tzset()
        os.umask(request.umask)
        os.chdir(request.directory)
        # The host's log handlers do not apply to the driver.
        for handler in logging.getLogger().handlers[:]:
            logging.getLogger().removeHandler(handler)
        arguments = request.command[3:]
        sys.argv = [DRIVER[1], *arguments]
        raise SystemExit(self._run(arguments))


def _run_job(arguments: list[str]) -> int:
    from spark_jobs import main

    return main.main(arguments)


def preload() -> list[str]:
    """Import the drivers' modules and return their names. Great Expectations only when it is installed.

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
        raise ConfigurationError(
            "An import has started a thread, which a fork would lose.", cause=f"The threads are {started}."
        )
    # Imported objects stay, so a driver's garbage collector need not scan them.
    gc.collect()
    gc.freeze()
    return names


def _close(descriptors: list[int]) -> None:
    while descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptors.pop())


def _signal_group(process_id: int, number: int) -> None:
    # The driver leads its group. Between its fork and its setpgid, only the process itself can be signalled.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.getpgid(process_id) == process_id:
            os.killpg(process_id, number)
        else:
            os.kill(process_id, number)


def main(argv: Sequence[str] | None = None) -> int:
    """Fork drivers on request until a signal ends this process."""
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.driver_host", description=main.__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="absolute path of a Unix socket")
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
