"""Collected tests, run in processes forked for them: what a run breaks is gone when it ends.

The parent imports and collects, and runs nothing, so that it has no threads and no open stores when it forks.
A forked run costs milliseconds, whatever the tests import.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import resource
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_IMPORTED_LATE = ("boto3.session", "botocore.client", "pyarrow.dataset", "pyarrow.parquet", "unittest.mock")
"""What tests load when they run: here once, instead of in every process."""

_MOST_BYTES = 8 << 30
"""A mutant may ask for all memory that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of some tests.

    Attributes:
        failed: the tests that failed; one at most when the run stops at the first.
        timed_out: the run did not end in time and was ended.
        crashed: the process ended by itself before its tests did.
        found: what the `after` of the run returned.
    """

    failed: tuple[str, ...] = ()
    timed_out: bool = False
    crashed: bool = False
    found: Any = None

    @property
    def passed(self) -> bool:
        """True when every test ran and none failed."""
        return not self.failed and not self.timed_out and not self.crashed


class ForkedTests:
    """A pytest plugin that hands the collected tests to a function instead of running them."""

    def __init__(self, use: Callable[[ForkedTests], None]) -> None:
        self._use = use
        self.items: dict[str, pytest.Item] = {}
        self._session: pytest.Session | None = None
        self._failed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests could not be collected")
        self._session = session
        self.items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()
        self._use(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def named(self, name: str) -> list[str]:
        """The tests of a file, a class or a function, parametrized or not."""
        return [one for one in self.items if one == name or one.startswith((f"{name}[", f"{name}::"))]

    def run(
        self,
        names: Iterable[str],
        *,
        before: Callable[[], object] = lambda: None,
        after: Callable[[], Any] = lambda: None,
        seconds: float,
        stop_at_first: bool = True,
    ) -> Outcome:
        """Run some tests in a process of their own.

        Args:
            names: node ids, in the order in which they run.
            before: called in that process first.
            after: called there last; its answer, which JSON can say, is in the outcome.
            seconds: of the processor's time that it may take; ten times that by the clock.
            stop_at_first: leave out what comes after a failure.
        """
        items = [self.items[name] for name in names]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            # Other work on the machine does not count; a lock that nobody opens takes no time either.
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))
            self._run_and_exit(items, before, after, writing, stop_at_first=stop_at_first)
        os.close(writing)
        return _answer(child, reading, 10 * seconds)

    def _run_and_exit(
        self,
        items: Sequence[pytest.Item],
        before: Callable[[], object],
        after: Callable[[], Any],
        writing: int,
        *,
        stop_at_first: bool,
    ) -> None:
        code = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nowhere, descriptor)
            before()
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if stop_at_first and self._failed:
                    break
            answer = {"failed": self._failed, "found": after()}
            with os.fdopen(writing, "w") as pipe:
                json.dump(answer, pipe)
            code = 0
        finally:
            # The parent's own cleaning up is not for this process.
            os._exit(code)


def collect(paths: Sequence[str], use: Callable[[ForkedTests], None]) -> int:
    """Collect the tests below some paths and hand them over; returns pytest's exit code.

    Each forked run finds its temporary folder empty. It is in memory where there is such a place: the library
    flushes all that it writes.

    Args:
        paths: files, folders or node ids.
        use: called once, with all tests collected.
    """
    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        return _collect(paths, use, scratch=Path(folder) / "run")


def _collect(paths: Sequence[str], use: Callable[[ForkedTests], None], *, scratch: Path) -> int:
    quiet = ["-q", "--capture=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # A failure is counted and not read: to explain it would take longer than most of the tests.
    terse = ["--assert=plain", "--tb=native"]
    options = [*quiet, *terse, f"--basetemp={scratch}"]
    return int(pytest.main([*options, *paths], plugins=[ForkedTests(use)]))


def _answer(child: int, reading: int, seconds: float) -> Outcome:
    deadline = time.monotonic() + seconds
    pieces: list[bytes] = []
    timed_out = False
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                timed_out = True
                break
            piece = os.read(reading, 1 << 16)
            if not piece:
                break
            pieces.append(piece)
    finally:
        os.close(reading)
        ended_by = _end(child)
    if timed_out or (ended_by == signal.SIGXCPU and not pieces):
        return Outcome(timed_out=True)
    if not pieces:
        return Outcome(crashed=True)
    answer = json.loads(b"".join(pieces))
    return Outcome(failed=tuple(answer["failed"]), found=answer["found"])


def _end(child: int) -> int:
    """End the process and what it has started: a mutant may have left some of it running.

    Returns the signal that ended it.
    """
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # It ended before it had a group of its own.
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
