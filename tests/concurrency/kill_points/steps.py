"""The I/O steps of a process, counted as they come; at a chosen one the process is killed.

A point is named by what is about to happen, or has just happened, to which object, and by how often that has
been so in this process. Names hold no random part, so a point of one run is found again in the next, also
when threads change places.
"""

from __future__ import annotations

import inspect
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from delta_core.storage.log_store import LogStore
from delta_core.storage.modified_time import SetsModifiedTimes

Moment = tuple[str, int]
"""A step's label and which one of that label it is, from 1 on."""

RETURNED = "the call returned"
"""The last moment of a run: the caller knows that it is done."""

_RANDOM = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _methods(protocol: type) -> tuple[str, ...]:
    found = vars(protocol).items()
    return tuple(name for name, member in found if inspect.isfunction(member) and not name.startswith("_"))


STORE_CALLS = _methods(LogStore)
"""Every method of the protocol: one that is added to it becomes a step by itself."""

CALLS_OF_SOME = _methods(SetsModifiedTimes)
"""What not every store can do."""


class Steps:
    """Counts moments, and ends the process at one."""

    def __init__(self, kill_at: Moment | None = None) -> None:
        self.seen: list[Moment] = []
        self._kill_at = kill_at
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, what: str, name: object = "") -> None:
        label = _RANDOM.sub("*", f"{what} {name}".strip())
        # The lock is held to the end: what another thread would do meanwhile must not be done.
        with self._lock:
            self._counts[label] += 1
            moment = (label, self._counts[label])
            self.seen.append(moment)
            if moment == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)


def step_through_store(store: type, steps: Steps) -> None:
    """Make every call of a store class two moments, before and after; for the rest of the process."""
    for name in (*STORE_CALLS, *(name for name in CALLS_OF_SOME if hasattr(store, name))):
        original = getattr(store, name)
        wrap = _stepped_output if name == "open_output" else _stepped_call
        setattr(store, name, wrap(name, original, steps))


def step_through_calls(
    target: type, names: Sequence[str], steps: Steps, *, about: Callable[[Mapping[str, Any]], str]
) -> None:
    """The same for methods that take keywords; `about` tells from them what a call acts on."""
    for name in names:
        setattr(target, name, _stepped_keywords(name, getattr(target, name), steps, about))


def _stepped_keywords(
    name: str, original: Callable[..., Any], steps: Steps, about: Callable[[Mapping[str, Any]], str]
) -> Callable[..., Any]:
    def call(self: object, **options: Any) -> Any:
        entry = about(options)
        steps(f"before {name}", entry)
        found = original(self, **options)
        steps(f"after {name}", entry)
        return found

    return call


def _stepped_call(name: str, original: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
    def call(self: object, *args: Any, **options: Any) -> Any:
        path = args[0] if args else ""
        path = " ".join(path) if isinstance(path, list | tuple) else path
        steps(f"before {name}", path)
        found = original(self, *args, **options)
        if inspect.isgenerator(found):
            found = iter(list(found))
        steps(f"after {name}", path)
        return found

    return call


def _stepped_output(name: str, original: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
    @contextmanager
    def call(self: object, path: str) -> Iterator[pa.NativeFile]:
        steps(f"before {name}", path)
        with original(self, path) as sink:
            steps("opened", path)
            with pa.PythonFile(_Output(sink, path, steps), mode="w") as watched:
                yield watched
            steps("written", path)
        steps(f"after {name}", path)

    return call


class _Output:
    """A file that is written in halves the first time, so that the process can end in between."""

    closed = False

    def __init__(self, sink: pa.NativeFile, path: str, steps: Steps) -> None:
        self._sink, self._path, self._steps = sink, path, steps
        self._whole = True

    def write(self, data: bytes) -> int:
        data = memoryview(data)
        if self._whole and len(data) > 8:
            self._whole = False
            half = len(data) // 2
            self._sink.write(data[:half])
            self._steps("partly written", self._path)
            self._sink.write(data[half:])
        else:
            self._sink.write(data)
        return len(data)

    def tell(self) -> int:
        return self._sink.tell()

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        # The store closes its own file.
        self.closed = True
