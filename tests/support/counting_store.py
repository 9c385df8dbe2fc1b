"""A local directory that behaves like an object store: counted requests, latency, pages of listings."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo

PAGE_KEYS = 1000


@dataclass
class Latency:
    """Seconds that a request takes before its first byte."""

    first_byte: float = 0.0
    list_page: float = 0.0


@dataclass
class Requests:
    """What was asked."""

    gets: list[str] = field(default_factory=list)
    list_pages: int = 0
    heads: list[str] = field(default_factory=list)
    most_at_once: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return len(self.gets) + self.list_pages + len(self.heads)

    def kinds(self) -> Counter[str]:
        """How many GETs by what they ask for: `checkpoint`, `json`, `crc`, `hint`, `data`."""
        return Counter(_kind(path) for path in self.gets)


class CountingStore(LocalLogStore):
    """Remote in every way but its place.

    Attributes:
        requests: since the last `reset`.
        before_get: called at the beginning of each GET, beside others'; a barrier there proves that they
            are sent side by side.
    """

    def __init__(self, *args: object, latency: Latency | None = None, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.latency = latency or Latency()
        self.requests = Requests()
        self.before_get: Callable[[str], None] = lambda path: None
        self._counting = threading.Lock()
        self._under_way = 0

    def reset(self) -> None:
        """Count from nothing."""
        self.requests = Requests()

    @property
    def remote(self) -> bool:
        return True

    def read(self, path: str) -> bytes:
        with self._counting:
            self.requests.gets.append(path)
            self._under_way += 1
            self.requests.most_at_once = max(self.requests.most_at_once, self._under_way)
        try:
            self.before_get(path)
            time.sleep(self.latency.first_byte)
            return super().read(path)
        finally:
            with self._counting:
                self._under_way -= 1

    def open_whole(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def open_input(self, path: str) -> pa.NativeFile:
        with self._counting:
            self.requests.heads.append(path)
        with super().open_input(path) as source:
            data = source.read()
        return pa.PythonFile(_Ranged(data, lambda: self._count_range(path)), mode="r")

    def head(self, path: str) -> ObjectInfo:
        with self._counting:
            self.requests.heads.append(path)
        return super().head(path)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        found = super().list_directory(path, start_after=start_after)
        pages = max(1, -(-len(found) // PAGE_KEYS))
        with self._counting:
            self.requests.list_pages += pages
        time.sleep(self.latency.list_page * pages)
        return found

    def _count_range(self, path: str) -> None:
        with self._counting:
            self.requests.gets.append(path)
        time.sleep(self.latency.first_byte)


class _Ranged(io.BytesIO):
    """Each read is a request of its own."""

    def __init__(self, data: bytes, count: Callable[[], None]) -> None:
        super().__init__(data)
        self._count = count

    def read(self, size: int | None = -1) -> bytes:
        self._count()
        return super().read(size)


def _kind(path: str) -> str:
    name = path.rpartition("/")[2]
    if not path.startswith("_delta_log/"):
        return "data"
    if name == "_last_checkpoint":
        return "hint"
    if ".checkpoint." in name or "_sidecars" in path:
        return "checkpoint"
    return name.rpartition(".")[2]
