"""The long-running processes of the demonstration, and how they are all ended.

Each service leads its own session. Its child processes may move to other process groups (Airflow's
supervisors and Spark's Python workers) or even to other sessions (job runners). Therefore the demonstration
ends every process that is in a service's session or has the demonstration's mark in its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from demo.layout import Layout, read_json, write_json

MARK = "DELTAWARD_DEMO_HOME"
LOOPBACK = "127.0.0.1"


class DemoError(Exception):
    """The demonstration cannot continue. The message contains the cause and where to find more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A process that leads its own session."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def require_alive(self) -> None:
        """Raise a DemoError with the end of the log if the service has ended."""
        code = self.process.poll()
        if code is not None:
            raise DemoError(f"{self.name} ended with code {code}.\n{tail(self.log)}\nIts log: {self.log}")


def start(
    name: str, command: Sequence[str], *, layout: Layout, environment: Mapping[str, str], cwd: Path
) -> Service:
    """Start a service and write its pid file."""
    log = layout.logs / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**environment, MARK: str(layout.home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    record_session(layout, name, process.pid)
    return Service(name=name, process=process, log=log)


def record_session(layout: Layout, name: str, pid: int) -> None:
    """Write the pid file of a process that leads its own session."""
    with contextlib.suppress(psutil.NoSuchProcess):
        # The start time distinguishes the process from a later one with the same process id.
        started = psutil.Process(pid).create_time()
        write_json(layout.pids / f"{name}.json", {"session": pid, "started": started})


def stop_all(layout: Layout, *, patience_seconds: float = 15.0) -> list[str]:
    """End every process of the demonstration at `layout.home` and remove the pid files.

    Returns:
        A line for each process that could not be ended; empty if none remains.
    """
    _signal_all(layout, signal.SIGTERM)
    deadline = time.monotonic() + patience_seconds
    while running(layout):
        if time.monotonic() > deadline:
            _signal_all(layout, signal.SIGKILL)
        if time.monotonic() > deadline + 10:
            break
        time.sleep(0.2)
    left = [_describe(process) for process in running(layout)]
    if not left:
        for pid_file in layout.pids.glob("*.json"):
            pid_file.unlink(missing_ok=True)
    return left


def running(layout: Layout) -> list[psutil.Process]:
    """The live processes of the demonstration at `layout.home`, without the current process.

    A process belongs to the demonstration if it has the mark, or is in a session that the demonstration
    started. The caller's own session never counts, because its other processes are unrelated.
    """
    recorded = dict(_recorded_sessions(layout))
    own_session = os.getsid(0)
    marked, members = [], []
    confirmed = set()
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            session = os.getsid(process.pid)
            if session == process.pid and _is_leader(process, recorded.get(session)):
                confirmed.add(session)
            if process.environ().get(MARK) == str(layout.home):
                marked.append(process)
                # If the leader has ended, only a marked member proves that the session belongs to the
                # demonstration: another session without a leader may have the same number by then.
                confirmed.add(session)
            elif session in recorded and session != own_session:
                members.append((session, process))
    return marked + [process for session, process in members if session in confirmed]


def _is_leader(process: psutil.Process, started: float | None) -> bool:
    return started is not None and abs(process.create_time() - started) < 1


def _recorded_sessions(layout: Layout) -> Iterator[tuple[int, float]]:
    for pid_file in sorted(layout.pids.glob("*.json")):
        with contextlib.suppress(ValueError, KeyError, TypeError, OSError):
            record = read_json(pid_file)
            yield int(record["session"]), float(record["started"])


def _signal_all(layout: Layout, number: signal.Signals) -> None:
    own_group = os.getpgid(0)
    groups = set()
    for process in running(layout):
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(process.pid))
    for group in groups - {own_group}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _describe(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:160]}"
    return str(process.pid)


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0


def tail(path: Path, *, lines: int = 15) -> str:
    try:
        return "\n".join("  | " + line for line in path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "  | (no log)"
