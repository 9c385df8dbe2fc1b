"""A store that misbehaves on command: the answers a real store can give to a create-only write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path

import pyarrow as pa

from delta_core.errors import (
    AmbiguousWriteError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
)
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore, ObjectInfo


class PutFault(StrEnum):
    """What happens to one create-only write."""

    NONE = "none"
    DROP_REQUEST = "the request is lost"
    DROP_RESPONSE = "the write lands, the response is lost"
    EXISTS_BUT_MINE = "the write lands, the client retries and reports that it exists"
    CONFLICT_409 = "nothing lands, the client reports that it exists"
    DENIED = "refused"
    NOT_WRITTEN = "it certainly did not take place"
    LANDS_LATE = "the response is lost and the write lands with the next request"


class FaultyStore:
    """Wraps a store; the faults of `puts` are used up in order by writes to the log, then all is well.

    Attributes:
        puts: faults of the coming create-only writes.
        failing_reads: how many coming reads of log files fail.
        unflushed: what is there cannot be made durable.
        before_put: called before each create-only write; lets another writer win.
        put_paths: every create-only write that was tried.
        read_paths: every read.
        deleted: every delete.
    """

    def __init__(self, inner: LogStore) -> None:
        self.inner = inner
        self.puts: list[PutFault] = []
        self.failing_reads = 0
        self.unflushed = False
        self.before_put: Callable[[str], None] | None = None
        self.put_paths: list[str] = []
        self.put_bodies: list[bytes] = []
        self.read_paths: list[str] = []
        self.listed: list[str] = []
        self.deleted: list[str] = []
        self._late: tuple[str, bytes] | None = None

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def consistent_listing(self) -> bool:
        return self.inner.consistent_listing

    @property
    def remote(self) -> bool:
        return self.inner.remote

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._land_late_write()
        if self.before_put is not None:
            self.before_put(path)
        self.put_paths.append(path)
        self.put_bodies.append(data)
        fault = self.puts.pop(0) if self.puts else PutFault.NONE
        match fault:
            case PutFault.NONE:
                self.inner.put_if_absent(path, data)
            case PutFault.DROP_REQUEST:
                raise AmbiguousWriteError("connection reset")
            case PutFault.DROP_RESPONSE:
                self._try(path, data)
                raise AmbiguousWriteError("timed out")
            case PutFault.EXISTS_BUT_MINE:
                self._try(path, data)
                raise ObjectExistsError("exists")
            case PutFault.CONFLICT_409:
                raise ObjectExistsError("exists")
            case PutFault.DENIED:
                raise StorePermissionError("denied")
            case PutFault.NOT_WRITTEN:
                raise NotWrittenError("no room yet")
            case PutFault.LANDS_LATE:
                self._late = (path, data)
                raise AmbiguousWriteError("timed out")

    def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        if self.failing_reads and path.startswith("_delta_log/"):
            self.failing_reads -= 1
            raise StorageError("503")
        return self.inner.read(path)

    def head(self, path: str) -> ObjectInfo:
        return self.inner.head(path)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        self.listed.append(path)
        return self.inner.list_directory(path, start_after=start_after)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        return self.inner.walk(path)

    def put(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)

    def delete(self, path: str) -> None:
        self.deleted.append(path)
        self.inner.delete(path)

    def persist(self, paths: Sequence[str]) -> None:
        if self.unflushed:
            raise StorageError("Could not flush.")
        self.inner.persist(paths)

    def open_input(self, path: str) -> pa.NativeFile:
        return self.inner.open_input(path)

    def open_whole(self, path: str) -> pa.NativeFile:
        return self.inner.open_whole(path)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        return self.inner.open_output(path)

    def exists(self, path: str) -> bool:
        """Whether the object is there."""
        try:
            self.inner.head(path)
        except ObjectNotFoundError:
            return False
        return True

    def _try(self, path: str, data: bytes) -> None:
        try:
            self.inner.put_if_absent(path, data)
        except ObjectExistsError:
            return

    def _land_late_write(self) -> None:
        if self._late is not None:
            late, self._late = self._late, None
            self._try(*late)


class FaultyLocalStore(LocalLogStore):
    """A local directory that Spark can open, whose log misbehaves as `faults` says."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.faults = FaultyStore(LocalLogStore(root))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.faults.put_if_absent(path, data)

    def read(self, path: str) -> bytes:
        return self.faults.read(path)
