"""Local stores that stamp their files with a clock's time, so that tables of a test grow old in no time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from delta_core.clock import ManualClock, SystemClock
from delta_core.storage.local import LocalLogStore


@contextmanager
def stamped(root: Path, clock: ManualClock) -> Iterator[None]:
    """Whatever a local store writes below `root` has the clock's time. Nothing is flushed to the disk.

    The machine's clock tells the same time: not every verb of the facade takes the clock of its handle.
    """

    def stamp(store: LocalLogStore, path: str) -> None:
        if store.root.is_relative_to(root):
            at_ns = clock.now_ms() * 1_000_000
            os.utime(store.root / path, ns=(at_ns, at_ns))

    def after(method: Callable[..., None]) -> Callable[..., None]:
        def write(store: LocalLogStore, path: str, data: bytes) -> None:
            method(store, path, data)
            stamp(store, path)

        return write

    plain_output = LocalLogStore.open_output

    @contextmanager
    def open_output(store: LocalLogStore, path: str) -> Iterator[pa.NativeFile]:
        with plain_output(store, path) as sink:
            yield sink
        stamp(store, path)

    replaced: dict[str, Any] = {
        "put_if_absent": after(LocalLogStore.put_if_absent),
        "put": after(LocalLogStore.put),
        "open_output": open_output,
    }
    with ExitStack() as stack:
        for name, method in replaced.items():
            stack.enter_context(mock.patch.object(LocalLogStore, name, method))
        for name in ("now_ms", "monotonic_seconds"):
            stack.enter_context(mock.patch.object(SystemClock, name, _telling(getattr(clock, name))))
        stack.enter_context(mock.patch("os.fsync"))
        yield


def _telling(time: Callable[[], float]) -> Callable[[SystemClock], float]:
    return lambda _: time()
