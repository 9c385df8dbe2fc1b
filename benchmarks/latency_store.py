"""A store in memory whose every request takes a round trip and is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from delta_core.storage import ObjectInfo
from tests.concurrency.matrix.memory_store import MemoryStore


class LatencyStore(MemoryStore):
    """Objects in memory, far away; for threads.

    A write takes effect half-way through its round trip, so that another writer can be told of it before
    the one who made it.

    Attributes:
        requests: how many of each kind were made.
    """

    remote = True

    def __init__(self, *, put_seconds: float, get_seconds: float) -> None:
        super().__init__()
        self.requests: Counter[str] = Counter()
        self._put_seconds, self._get_seconds = put_seconds, get_seconds
        self._counting = threading.Lock()

    def read(self, path: str) -> bytes:
        with self._round_trip("GET", self._get_seconds):
            return super().read(path)

    def head(self, path: str) -> ObjectInfo:
        with self._round_trip("HEAD", self._get_seconds):
            return super().head(path)

    def open_input(self, path: str) -> pa.NativeFile:
        with self._round_trip("GET", self._get_seconds):
            return super().open_input(path)

    open_whole = open_input

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        with self._round_trip("LIST", self._get_seconds):
            return super().list_directory(path, start_after=start_after)

    def put_if_absent(self, path: str, data: bytes) -> None:
        with self._round_trip("PUT", self._put_seconds):
            super().put_if_absent(path, data)

    def put(self, path: str, data: bytes, *, modified_ms: int | None = None) -> None:
        with self._round_trip("PUT", self._put_seconds):
            super().put(path, data, modified_ms=modified_ms)

    def persist(self, paths: object) -> None:
        """What was written is durable."""

    @contextmanager
    def _round_trip(self, kind: str, seconds: float) -> Iterator[None]:
        with self._counting:
            self.requests[kind] += 1
        time.sleep(seconds / 2)
        try:
            yield
        finally:
            time.sleep(seconds / 2)
