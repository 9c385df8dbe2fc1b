"""Driver hosts: the real one, and one whose drivers run a script of the test.

The latter is `python -m tests.support.host_script SOCKET`.
"""

from __future__ import annotations

import os
import runpy
import socket as socketlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.driver_host import DriverHost
from tests.support.repository import ROOT, import_path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningHost:
    """A host that listens."""

    socket: str
    process: subprocess.Popen[str]
    log_path: Path


def script_host(socket: Path) -> AbstractContextManager[RunningHost]:
    """A running host of scripts: ask it for `PYTHON -m spark_jobs.main SCRIPT ARGUMENT...`."""
    return _running([sys.executable, "-m", "tests.support.host_script", str(socket)], socket, os.environ)


def driver_host(socket: Path) -> AbstractContextManager[RunningHost]:
    """A running host of the real driver, with the search path that the demonstration gives its drivers."""
    command = [sys.executable, "-m", "spark_jobs.driver_host", "--socket", str(socket)]
    return _running(
        command, socket, {**os.environ, "PYTHONPATH": import_path("plugins"), "PYTHONSAFEPATH": "1"}
    )


@contextmanager
def _running(command: list[str], socket: Path, environment: Mapping[str, str]) -> Iterator[RunningHost]:
    log_path = socket.with_suffix(".log")
    with log_path.open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        give_up = time.monotonic() + 600
        while not _answers(socket):
            assert process.poll() is None, log_path.read_text()
            assert time.monotonic() < give_up, log_path.read_text()
            time.sleep(0.05)
        yield RunningHost(socket=str(socket), process=process, log_path=log_path)
    finally:
        process.terminate()
        process.wait(timeout=300)


def _answers(path: Path) -> bool:
    with socketlib.socket(socketlib.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _run_script(arguments: list[str]) -> int:
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    with DriverHost(Path(sys.argv[1]), run=_run_script) as serving:
        serving.serve()
