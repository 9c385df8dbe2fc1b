"""Which functions of the library each test calls, and how long it takes."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.support.mutation.forked_tests import ForkedTests
from tests.support.repository import ROOT

_SECONDS_A_FILE = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMap:
    """What is known of some tests.

    Attributes:
        tests: by function (`delta_core/log/listing.py:list_log`) the tests that call it.
        seconds: of the processor's time that each test took while it was watched.
        failing: tests that fail by themselves, which are no witnesses.
    """

    tests: dict[str, list[str]]
    seconds: dict[str, float]
    failing: tuple[str, ...]

    def witnesses(self, function: str, *, first: Sequence[str], most_seconds: float) -> list[str]:
        """The tests that may notice a change of a function, the likeliest first.

        Those are the ones given, then those of the function's own package, the quickest first.
        """
        rest = [name for name in self.tests.get(function, ()) if name not in first]
        own = f"tests/unit/{function.split('/')[1]}/"
        rest.sort(key=lambda name: (not name.startswith(own), self.seconds[name]))
        chosen, total = [], 0.0
        for name in [*first, *rest]:
            chosen.append(name)
            total += self.seconds[name]
            if total > most_seconds:
                break
        return chosen


class _Recorder:
    """A pytest plugin, in a process that runs tests: notes what each of them calls, in any thread."""

    def __init__(self) -> None:
        self._called: dict[str, dict[int, CodeType]] = {}
        self._now: dict[int, CodeType] = {}
        self._seconds: dict[str, float] = {}

    def start(self, config: pytest.Config) -> None:
        config.pluginmanager.register(self)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._now = self._called[nodeid] = {}
        self._seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._seconds[nodeid] += time.process_time()

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            # By identity: the hash of a code is that of all of its constants.
            self._now[id(frame.f_code)] = frame.f_code

    def found(self) -> dict[str, Any]:
        sys.setprofile(None)
        functions = {nodeid: sorted(set(_functions(codes))) for nodeid, codes in self._called.items()}
        return {"functions": functions, "seconds": self._seconds}


def _functions(codes: dict[int, CodeType]) -> Iterator[str]:
    for code in list(codes.values()):
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT / "delta_core"):
            outer = code.co_qualname.partition(".<locals>")[0]
            yield f"{path.relative_to(ROOT)}:{outer}"


def call_map(tests: ForkedTests, kept: Path) -> CallMap:
    """Run every test once, those of a file in one process, and watch.

    Args:
        tests: all of them.
        kept: a folder for what was seen; a file's tests run again when they or the library have changed.
    """
    calling: dict[str, list[str]] = defaultdict(list)
    seconds: dict[str, float] = {}
    failing: list[str] = []
    library = _hash_of(sorted((ROOT / "delta_core").rglob("*.py")))
    for file in dict.fromkeys(name.partition("::")[0] for name in tests.items):
        seen_at = kept / f"{library}-{_hash_of([ROOT / file])}.json"
        if not seen_at.is_file():
            seen_at.parent.mkdir(parents=True, exist_ok=True)
            seen_at.write_text(json.dumps(_seen(tests, tests.named(file))))
        seen = json.loads(seen_at.read_text())
        failing += seen["failed"]
        seconds.update(seen["seconds"])
        for name, functions in seen["functions"].items():
            for function in functions:
                calling[function].append(name)
    return CallMap(tests=dict(calling), seconds=seconds, failing=tuple(failing))


def _seen(tests: ForkedTests, names: Sequence[str]) -> dict[str, Any]:
    recorder = _Recorder()
    config = tests.items[names[0]].config
    outcome = tests.run(
        names,
        before=lambda: recorder.start(config),
        after=recorder.found,
        seconds=_SECONDS_A_FILE,
        stop_at_first=False,
    )
    if outcome.timed_out or outcome.crashed:
        return {"failed": list(names), "seconds": {}, "functions": {}}
    passed = {
        name: functions
        for name, functions in outcome.found["functions"].items()
        if name not in outcome.failed
    }
    return {"failed": outcome.failed, "seconds": outcome.found["seconds"], "functions": passed}


def _hash_of(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
