"""Drivers in processes of their own: started, killed, frozen, thawed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from delta_core.jobs.codec import result_from_json, spec_to_json
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from tests.support.repository import import_path

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A running driver and where its result goes."""

    process: subprocess.Popen[bytes]
    result_path: Path
    log_path: Path

    def wait(self, *, timeout_seconds: float = 1200) -> int:
        """The exit code; negative for the signal that ended it."""
        try:
            return self.process.wait(timeout=timeout_seconds)
        finally:
            self.end_group()

    def wait_until_stopped(self) -> None:
        """Return once the driver has stopped itself (SIGSTOP).

        Raises:
            AssertionError: it ended instead.
        """
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), self.log()

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.process.pid, signal.SIGCONT)

    def end_group(self) -> None:
        """Kill whatever the driver has left behind in its process group."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def result(self) -> JobResult | None:
        """The result; None when the driver wrote none."""
        return result_from_json(self.result_path.read_text()) if self.result_path.exists() else None

    def log(self) -> str:
        """Its output."""
        return self.log_path.read_text(errors="replace")


def start_driver(
    spec: JobSpec,
    folder: Path,
    *,
    name: str = "job",
    signal_at: str | None = None,
    signal_name: str = "KILL",
    occurrence: int = 1,
    remote: str | None = None,
    program: str = "spark_jobs.main",
) -> Driver:
    """Start a driver for `spec`; with `signal_at` it sends itself a signal at that progress event."""
    folder.mkdir(parents=True, exist_ok=True)
    spec_path, result_path, log_path = (
        folder / f"{name}.{end}" for end in ("spec.json", "result.json", "log")
    )
    spec_path.write_text(spec_to_json(spec))
    engine = ["--remote", remote] if remote else ["--master", "local[2]"]
    arguments = ["--spec", str(spec_path), "--result", str(result_path), *engine]
    if signal_at is None:
        command = [sys.executable, "-m", program, *arguments]
    else:
        command = [
            sys.executable,
            *("-m", "tests.support.driver_main", "--at", signal_at, "--signal", signal_name),
            *("--occurrence", str(occurrence), "--", *arguments),
        ]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": import_path("plugins")},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Driver(process=process, result_path=result_path, log_path=log_path)
