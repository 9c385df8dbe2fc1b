"""A process that has everything imported, forks a child for each run of an operation, and waits for its end.

    python -m tests.concurrency.kill_points.nursery

reads requests, one JSON document a line, and answers each with a line: how the child ended, and what it told.
It has a single thread, so that a child finds no lock taken by a thread that it does not have.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from tests.concurrency.kill_points.child import Request, run_in_child
from tests.support.repository import ROOT, import_path

CHILD_SECONDS = 600.0
_LOOKS_EVERY_SECONDS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended.

    Attributes:
        status: its exit code; negative: the signal that ended it.
        moments: the steps that it went through, if it came to its end.
        errors: what it wrote to its standard error.
    """

    status: int
    moments: tuple[tuple[str, int], ...]
    errors: str

    @property
    def killed(self) -> bool:
        """Whether it met its point."""
        return self.status == -signal.SIGKILL


class Nursery:
    """The process, for one caller at a time. Use it as a context."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.kill_points.nursery"],
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": import_path()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(CHILD_SECONDS)
        self._process.stdout.close()

    def run(self, request: Request) -> Ended:
        """Run an operation in a child of its own and wait for its end."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(request), default=str), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the nursery has ended"
        told: Mapping[str, Any] = json.loads(answer)
        moments = tuple((label, number) for label, number in told["moments"])
        return Ended(status=told["status"], moments=moments, errors=told["errors"])


def serve() -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        request = Request.of(json.loads(line))
        report, errors = request.folder / "report.json", request.folder / "errors.txt"
        report.unlink(missing_ok=True)
        assert threading.active_count() == 1, threading.enumerate()
        child = os.fork()
        if child == 0:
            run_in_child(request, report=report, errors=errors)
        status = _end_of(child)
        moments = json.loads(report.read_text()) if report.exists() else []
        answer = {"status": status, "moments": moments, "errors": errors.read_text()}
        print(json.dumps(answer), flush=True)


def _end_of(child: int) -> int:
    deadline = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_LOOKS_EVERY_SECONDS)
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    return -signal.SIGTERM


if __name__ == "__main__":
    serve()
