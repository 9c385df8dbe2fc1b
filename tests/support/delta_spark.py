"""Has delta-spark run the programs beside this file, all of them in one process beside the tests."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.repository import ROOT
from tests.support.soak import SEED

_ENDS_WITHIN_SECONDS = 300


def by_delta_spark(program: str, *arguments: str) -> None:
    """Run `tests.support.delta_spark_PROGRAM`; skip the test where its jars cannot be had.

    Raises:
        AssertionError: the program failed; with what it said.
    """
    global _server
    if _server is None:
        _server = _Server()
        atexit.register(_end)
    try:
        problem = _server.answer([program, *arguments])
    except BaseException:
        # Be it a test that ran out of time: the next answer would be that of this program.
        _end(at_once=True)
        raise
    assert problem is None, f"delta-spark: {problem[-4000:]}"


def sample_by_delta_spark(area: str, out: Path, *arguments: str) -> dict[str, Any]:
    """What an area's program of `benchmarks/soak/` says of a few tables, by the seed."""
    by_delta_spark("soak", area, "--no-singles", "--seed", SEED, *arguments, "--output", str(out))
    report: dict[str, Any] = json.loads(out.read_text())
    return report


class _Server:
    """The process, from its first program on."""

    def __init__(self) -> None:
        self._said: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.delta_spark_server"],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def answer(self, request: list[str]) -> str | None:
        """What went wrong, if anything did."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            problem: str | None = json.loads(line)
            return problem
        self._said.seek(0)
        said = self._said.read()
        if "unresolved dependency" in said and not os.environ.get("CI"):
            pytest.skip("delta-spark's jars are not in .tools/ivy, and Maven cannot be reached")
        raise AssertionError(f"delta-spark has ended: {said[-4000:]}")

    def end(self, *, at_once: bool) -> None:
        """Let it go, or kill it."""
        assert self._process.stdout is not None
        if at_once:
            self._process.kill()
        try:
            self._process.communicate(timeout=_ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._said.close()


def _environment() -> dict[str, str]:
    # Spark in this process leaves variables behind that another one would go by. The JVM's flags are ours.
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("SPARK_") or key == "SPARK_SUBMIT_OPTS"
    }
    return {**kept, "PYSPARK_PYTHON": sys.executable}


def _end(*, at_once: bool = False) -> None:
    global _server
    if _server is not None:
        _server.end(at_once=at_once)
        _server = None


_server: _Server | None = None
