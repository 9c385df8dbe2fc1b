"""The caller's side of a worker process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One timed operation."""

    seconds: float
    value: Any
    peak_rss_bytes: int


class Contestant:
    """An engine in its own process; use as a context manager."""

    def __init__(self, engine: str, *, log: Path) -> None:
        self.engine = engine
        self._log = log.open("ab")
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=environment,
            text=True,
            start_new_session=True,
        )
        self._answer()

    def __enter__(self) -> Contestant:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def time(self, operation: str, **arguments: Any) -> Timing:
        """Run one operation in the worker; its own clock times it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"operation": operation, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"{self.engine}.{operation} failed:\n{answer['error']}")
        return Timing(**answer)

    def kill(self) -> None:
        """End the worker at once; an operation under way fails."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the worker, its children too."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=30)
        self.kill()
        self._process.wait()
        self._log.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.engine} ended; see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        return answer
