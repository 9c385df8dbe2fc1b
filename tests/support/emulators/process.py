"""A server as a process of its own: started on a free loopback port, waited for, ended with its group."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from demo.processes import LOOPBACK, free_port

__all__ = ["LOOPBACK", "EmulatorError", "free_port", "running", "speaks_http", "with_http"]

_ATTEMPTS = 3
_SECONDS_TO_END = 5.0


class EmulatorError(Exception):
    """A server did not start; the text holds the end of what it printed."""


@contextlib.contextmanager
def running(
    command: Callable[[int], list[str]],
    *,
    folder: Path,
    ready: Callable[[int], bool],
    seconds: float = 300.0,
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Run `command(port)` with its output in `folder/server.log`; yields the port once `ready(port)`.

    The server ends with the thread that starts it, so that a killed test leaves none behind: start it in
    one that lives as long as the server is needed.

    Raises: EmulatorError: it ended or did not answer in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    for attempt in range(1, _ATTEMPTS + 1):
        port = free_port()
        process = _start(command(port), folder=folder, log=log, environment=environment or {})
        try:
            if _becomes_ready(process, port, ready=ready, seconds=seconds):
                yield port
                return
            # A port that is free can be taken before the server binds it: it then ends at once.
            if process.poll() is None or attempt == _ATTEMPTS:
                state = "does not answer" if process.poll() is None else f"ended with {process.returncode}"
                raise EmulatorError(f"{command(port)[0]} {state}: {log.read_text(errors='replace')[-4000:]}")
        finally:
            _end(process)


def speaks_http(port: int, *, path: str = "/") -> bool:
    """True when an HTTP server answers there, whatever it says."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", path)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def with_http(options: Mapping[str, Any]) -> dict[str, Any]:
    """Obstore's options with plain HTTP allowed, which it refuses by itself."""
    return {**options, "client_options": {"allow_http": True, **options.get("client_options", {})}}


def _start(
    command: list[str], *, folder: Path, log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    setpriv = shutil.which("setpriv")
    tied = [setpriv, "--pdeathsig=KILL"] if setpriv else []
    with log.open("wb") as output:
        return subprocess.Popen(
            [*tied, *command],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _becomes_ready(
    process: subprocess.Popen[bytes], port: int, *, ready: Callable[[int], bool], seconds: float
) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if ready(port):
            # What answers could be another's server on the port that this one failed to bind.
            time.sleep(0.02)
            return process.poll() is None
        time.sleep(0.02)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_SECONDS_TO_END)
            break
    # What the server itself had started is in its group and may outlive it.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
