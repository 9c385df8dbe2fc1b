"""A long-lived process that has done a driver's imports, and forks one driver per job.

`python -m spark_jobs.driver_host --socket PATH` runs one in the foreground. A driver that is started anew
spends most of a small job's time on importing pyspark, pandas and Great Expectations; one that is forked
here begins with its work. Nothing is shared between drivers but what was imported: each has its own
environment, directory, output and Spark session.

Who asks is the runner's `keeper`, over a Unix socket that only the host's own user may use: one JSON line
({"command", "environment", "directory"}) with standard output and error as file descriptors. The answers
are lines, too: `started PID`, at the end `exit CODE`, or `refused REASON`, upon which the keeper starts the
driver itself. `signal N` from the keeper goes to the driver. A connection that ends ends the driver.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import logging
import os
import selectors
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from delta_core.errors import ConfigurationError
from spark_jobs.watchdog import exit_with_parent

_LOGGER = logging.getLogger(__name__)

_PRELOADED = ("spark_jobs.main", "pyspark.sql.connect.session", "pandas", "pyarrow.parquet")
_MAIN = ["-m", "spark_jobs.main"]
_REQUEST_SECONDS = 5.0
_REQUEST_BYTES = 4 << 20
_OUTPUTS = 2


@dataclass(slots=True)
class _Driver:
    """One forked driver and the connection of whoever waits for it."""

    process_id: int
    connection: socket.socket
    unread: bytes = field(default=b"")


class DriverHost:
    """Listens on a socket and forks drivers until it is told to end; use as a context manager.

    Args:
        path: the socket's; what is there and answers nobody is replaced.
        run: what a driver does with its arguments, to its exit code; the driver's program when left out.

    Raises:
        ConfigurationError: the socket cannot be made, or another host answers there.
    """

    def __init__(self, path: Path, *, run: Callable[[list[str]], int] | None = None) -> None:
        self._path = path
        self._run = run or _run_job
        self._code = code_on_disk()
        self._drivers: dict[int, _Driver] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = _listen(path)
        self._woken, self._wake = socket.socketpair()
        self._process_id = os.getpid()
        self._ended = False

    def __enter__(self) -> DriverHost:
        for end in (self._woken, self._wake):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        return self

    def __exit__(self, *exc: object) -> None:
        for driver in self._drivers.values():
            _signal_group(driver.process_id, signal.SIGKILL)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def serve(self) -> None:
        """Fork drivers and report their ends; returns after SIGTERM or SIGINT."""
        while not self._ended:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    with contextlib.suppress(BlockingIOError):
                        self._woken.recv(4096)
                elif key.data in self._drivers:
                    self._obey(self._drivers[key.data])
            self._report_ended()

    def _end(self, *_: object) -> None:
        self._ended = True

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        descriptors: list[int] = []
        try:
            connection.settimeout(_REQUEST_SECONDS)
            _require_same_user(connection)
            request, descriptors = _receive(connection)
            self._require_fitting(request)
            sys.stdout.flush()
            process_id = os.fork()
            if process_id == 0:
                self._become_driver(request, descriptors, connection)
        except (ConfigurationError, ValueError, KeyError, TypeError, OSError) as error:
            _LOGGER.warning("a request was refused: %s", error)
            with contextlib.suppress(OSError):
                connection.sendall(f"refused {' '.join(str(error).split())}\n".encode())
            connection.close()
        else:
            connection.setblocking(False)
            self._drivers[process_id] = _Driver(process_id=process_id, connection=connection)
            self._selector.register(connection, selectors.EVENT_READ, data=process_id)
            # Who has gone meanwhile is noticed by the selector, which ends the driver.
            with contextlib.suppress(OSError):
                connection.sendall(f"started {process_id}\n".encode())
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _require_fitting(self, request: dict[str, Any]) -> None:
        """A driver that would not be the one the command names must not be forked from here.

        Raises:
            ConfigurationError: another interpreter, program, search path or state of the code.
        """
        interpreter, *arguments = request["command"]
        if interpreter != sys.executable or arguments[:2] != _MAIN:
            raise ConfigurationError("the command is not the driver of this interpreter")
        if request["environment"].get("PYTHONPATH", "") != os.environ.get("PYTHONPATH", ""):
            raise ConfigurationError("the driver's PYTHONPATH is not the host's")
        if code_on_disk() != self._code:
            raise ConfigurationError("the code changed since the host has loaded it: restart the host")

    def _obey(self, driver: _Driver) -> None:
        try:
            received = driver.connection.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            # Nobody waits for this driver any more, so it must not go on to commit.
            _signal_group(driver.process_id, signal.SIGKILL)
            self._selector.unregister(driver.connection)
            return
        *lines, driver.unread = (driver.unread + received).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"signal" and number.isdigit():
                _signal_group(driver.process_id, int(number))

    def _report_ended(self) -> None:
        while self._drivers:
            try:
                process_id, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process_id == 0:
                return
            driver = self._drivers.pop(process_id, None)
            if driver is None:
                continue
            # What the driver has started and left behind must not go on either.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process_id, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(driver.connection)
            with contextlib.suppress(OSError):
                driver.connection.sendall(f"exit {code if code >= 0 else 128 - code}\n".encode())
            driver.connection.close()

    def _become_driver(
        self, request: dict[str, Any], descriptors: Sequence[int], connection: socket.socket
    ) -> NoReturn:
        """The forked process's whole life."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.setpgid(0, 0)
            # A connection that a driver holds open would never end.
            for held in (connection, self._listener, self._woken, self._wake):
                held.close()
            for other in self._drivers.values():
                other.connection.close()
            self._selector.close()
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), 0)
            for target, descriptor in enumerate(descriptors, start=1):
                os.dup2(descriptor, target)
                os.close(descriptor)
            os.environ.clear()
            os.environ.update(request["environment"])
            time.tzset()
            os.chdir(request["directory"])
            exit_with_parent()
            # The host's own lines went elsewhere, and under other rules.
            for handler in logging.getLogger().handlers[:]:
                logging.getLogger().removeHandler(handler)
            arguments = request["command"][3:]
            sys.argv = [_MAIN[1], *arguments]
            code = self._run(arguments)
        except SystemExit as error:  # argparse, about wrong arguments
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                logging.shutdown()
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)


def _run_job(arguments: list[str]) -> int:
    from spark_jobs import main

    return main.main(arguments)


def preload() -> list[str]:
    """Import what drivers import; returns the names. Great Expectations only where it is installed.

    Raises:
        ConfigurationError: pyspark is not installed, or an import has started a thread.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise ConfigurationError("pyspark is not installed.", fix="pip install 'deltaward[spark]'")
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
    return names


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise ConfigurationError(f"Another driver host answers at {path}", fix="Stop it first")
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"The driver host cannot listen at {path}",
            cause=str(error),
            fix="Name a path in a directory that this user may write, shorter than 100 characters",
        ) from error
    except BaseException:
        listener.close()
        raise
    return listener


def _require_same_user(connection: socket.socket) -> None:
    """Raises ConfigurationError when the other end is another user's. Where the system tells."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return  # the socket's mode alone keeps others out
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, size))
    if user != os.geteuid():
        raise ConfigurationError("the request comes from another user")


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    text, descriptors, _, _ = socket.recv_fds(connection, 65536, _OUTPUTS)
    try:
        while text and not text.endswith(b"\n"):
            more = connection.recv(65536)
            text += more
            if not more or len(text) > _REQUEST_BYTES:
                raise ValueError("the request does not end")
        request = json.loads(text)
        if not isinstance(request, dict) or len(descriptors) != _OUTPUTS:
            raise ValueError("the request is not a JSON object with two file descriptors")
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return request, list(descriptors)


def code_on_disk(packages: Sequence[str] = ("delta_core", "spark_jobs")) -> int:
    """A number that changes when a source file of the packages does; of use within one process."""
    found = []
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for parent, _, files in os.walk(folder):
                for name in files:
                    if name.endswith(".py"):
                        path = os.path.join(parent, name)
                        status = os.stat(path)
                        found.append((path, status.st_mtime_ns, status.st_size))
    return hash(tuple(sorted(found)))


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
        with DriverHost(arguments.socket) as host:
            print(f"drivers are forked at {arguments.socket}; loaded: {', '.join(names)}", flush=True)
            host.serve()
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
