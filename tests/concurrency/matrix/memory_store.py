"""A `LogStore` in memory that can be forked: thousands of small tables, each from one template."""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import ObjectExistsError, ObjectNotFoundError
from delta_core.storage.log_store import ObjectInfo

_numbers = count()


class MemoryStore:
    """Objects in a dictionary. Works as the protocol `LogStore` says, for threads too."""

    consistent_listing = True
    remote = False

    def __init__(self, objects: dict[str, tuple[bytes, ObjectInfo]] | None = None) -> None:
        # Tasks find their store by its URI, so no two stores may share one.
        self.uri = f"memory://tables/table-{next(_numbers)}"
        self._objects = dict(objects or {})
        self._lock = threading.Lock()

    def fork(self) -> MemoryStore:
        """A store with the same objects, which goes its own way from here."""
        return MemoryStore(self._objects)

    def receive(self, other: MemoryStore, *, base: MemoryStore) -> None:
        """Take over what another fork of `base` has written and deleted since."""
        with self._lock:
            for path in base._objects.keys() - other._objects.keys():
                self._objects.pop(path, None)
            self._objects.update({p: entry for p, entry in other._objects.items() if p not in base._objects})

    def paths(self) -> set[str]:
        """Every object's path."""
        with self._lock:
            return set(self._objects)

    def read(self, path: str) -> bytes:
        return self._find(path)[0]

    def head(self, path: str) -> ObjectInfo:
        return self._find(path)[1]

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self._find(path)[0])

    open_whole = open_input

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        found = [info for info in self._infos() if posixpath.dirname(info.path) == path]
        found = [i for i in found if start_after is None or posixpath.basename(i.path) > start_after]
        return sorted(found, key=lambda info: info.path)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        return iter([info for info in self._infos() if not path or info.path.startswith(f"{path}/")])

    def put_if_absent(self, path: str, data: bytes) -> None:
        with self._lock:
            if path in self._objects:
                raise ObjectExistsError(f"{path} exists")
            self._set(path, data)

    def put(self, path: str, data: bytes, *, modified_ms: int | None = None) -> None:
        with self._lock:
            self._set(path, data, modified_ms)

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        sink = pa.BufferOutputStream()
        yield sink
        self.put(path, sink.getvalue().to_pybytes())

    def delete(self, path: str) -> None:
        with self._lock:
            self._objects.pop(path, None)

    def persist(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.head(path)

    def _set(self, path: str, data: bytes, modified_ms: int | None = None) -> None:
        modified = SYSTEM_CLOCK.now_ms() if modified_ms is None else modified_ms
        self._objects[path] = data, ObjectInfo(path=path, size_bytes=len(data), modified_ms=modified)

    def _find(self, path: str) -> tuple[bytes, ObjectInfo]:
        with self._lock:
            if path not in self._objects:
                raise ObjectNotFoundError(f"{path} does not exist")
            return self._objects[path]

    def _infos(self) -> list[ObjectInfo]:
        with self._lock:
            return [info for _, info in self._objects.values()]
