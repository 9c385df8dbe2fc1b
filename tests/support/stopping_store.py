"""A store whose process ends at one of its requests: before the request takes effect, or right after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo


class Stopped(BaseException):
    """The process is no more. Not an Exception: nobody goes on after it."""


class StoppingStore(LocalLogStore):
    """Counts requests, and ends at one.

    Attributes:
        stop_at: the request to end at, from 1; 0 for none.
        after: end when the request has taken effect.
        requests: what was asked so far.
    """

    stop_at = 0
    after = False

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.requests: list[str] = []

    @contextmanager
    def _request(self, text: str) -> Iterator[None]:
        if self.stop_at and len(self.requests) >= self.stop_at:
            raise Stopped(text)  # what runs beside it ends, too
        self.requests.append(text)
        stops = len(self.requests) == self.stop_at
        if stops and not self.after:
            raise Stopped(text)
        yield
        if stops:
            raise Stopped(text)

    def read(self, path: str) -> bytes:
        with self._request(f"read {path}"):
            return super().read(path)

    def head(self, path: str) -> ObjectInfo:
        with self._request(f"head {path}"):
            return super().head(path)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        with self._request(f"list {path}"):
            return super().list_directory(path, start_after=start_after)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        with self._request(f"walk {path}"):
            found = list(super().walk(path))
        yield from found

    def open_input(self, path: str) -> pa.NativeFile:
        with self._request(f"open {path}"):
            return super().open_input(path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        with self._request(f"create {path}"):
            super().put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        with self._request(f"put {path}"):
            super().put(path, data)

    def persist(self, paths: Sequence[str]) -> None:
        with self._request("persist"):
            super().persist(paths)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        with self._request(f"time {path}"):
            super().set_modified_ms(path, modified_ms)

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with self._request(f"write {path}"), super().open_output(path) as sink:
            yield sink
