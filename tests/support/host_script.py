"""A driver host whose drivers run a script of the test: `python -m tests.support.host_script SOCKET`."""

from __future__ import annotations

import runpy
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.driver_host import DriverHost
from tests.support.repository import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptHost:
    """A running host. Drivers are asked for as `PYTHON -m spark_jobs.main SCRIPT ARGUMENT...`."""

    socket: str
    process: subprocess.Popen[str]
    log_path: Path


@contextmanager
def script_host(socket: Path) -> Iterator[ScriptHost]:
    log_path = socket.with_suffix(".log")
    with log_path.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.host_script", str(socket)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        give_up = time.monotonic() + 60
        while not socket.exists():
            assert process.poll() is None, log_path.read_text()
            assert time.monotonic() < give_up, log_path.read_text()
            time.sleep(0.05)
        yield ScriptHost(socket=str(socket), process=process, log_path=log_path)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _run_script(arguments: list[str]) -> int:
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    with DriverHost(Path(sys.argv[1]), run=_run_script) as serving:
        serving.serve()
