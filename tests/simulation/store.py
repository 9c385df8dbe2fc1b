"""An object store in memory that misbehaves the way real ones do, at rates drawn for each history.

Objects appear whole or not at all, as the protocol `LogStore` demands, so torn writes, which only a file
system has, are left out. Its torn listings are not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

import pyarrow as pa

from delta_core.errors import (
    AmbiguousWriteError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
)
from delta_core.storage.log_store import ObjectInfo
from tests.simulation.faults import WRITE_FAULTS, Faults
from tests.simulation.scheduler import Crashed, Scheduler

LATE_SECONDS = 900.0
"""A request that is under way longer than this has been given up by every network in between."""

DAY_SECONDS = 86_400.0
PAUSES = (30.0, 600.0, 4_000.0, 2 * DAY_SECONDS, 10 * DAY_SECONDS, 40 * DAY_SECONDS)


class Change(StrEnum):
    """What happened to an object."""

    CREATED = "created"
    REPLACED = "replaced"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change; the ledger of all of them is what histories are judged by."""

    change: Change
    path: str
    data: bytes
    info: ObjectInfo
    at_us: int


class SimulatedStore:
    """The objects below one table root. Whoever the scheduler runs is the client.

    Attributes:
        ledger: every change, in order.
        remote: as in `LogStore`; the library then reads side by side and whole.
        faults: what goes wrong; set it to `Faults()` for a store that works.
    """

    uri = "memory://table"

    def __init__(self, scheduler: Scheduler, faults: Faults, *, remote: bool = False) -> None:
        self.remote = remote
        self.faults = faults
        self.ledger: list[Entry] = []
        self._scheduler = scheduler
        self._random = scheduler.random
        self._objects: dict[str, tuple[bytes, ObjectInfo]] = {}
        self._hidden_until_us: dict[str, int] = {}

    @property
    def consistent_listing(self) -> bool:
        return not self.faults.weak

    # ------------------------------------------------------------ reading

    def read(self, path: str) -> bytes:
        with self._request("read", path):
            return self._find(path)[0]

    def head(self, path: str) -> ObjectInfo:
        with self._request("head", path):
            return self._find(path)[1]

    def open_input(self, path: str) -> pa.NativeFile:
        with self._request("open", path):
            return pa.BufferReader(self._find(path)[0])

    open_whole = open_input

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        with self._request("list", path):
            found = [info for info in self._read_directory() if posixpath.dirname(info.path) == path]
            found.sort(key=lambda info: info.path)
            if start_after is not None:
                found = [info for info in found if posixpath.basename(info.path) > start_after]
            return self._distorted(found)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        with self._request("walk", path):
            found = [info for info in self._listed() if not path or info.path.startswith(f"{path}/")]
        return iter(found)

    # ------------------------------------------------------------ writing

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._interrupt("put-if-absent", path)
        if self._strikes("held_commit"):
            self._hold()
        try:
            self._deliver(path, data, self._write_fault())
        finally:
            self._interrupt("put-if-absent answered", path)

    def put(self, path: str, data: bytes) -> None:
        with self._request("put", path):
            self._set(path, data)
            self._lose_response()

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        sink = pa.BufferOutputStream()
        yield sink
        with self._request("write", path):
            self._set(path, sink.getvalue().to_pybytes())
            self._lose_response()

    def delete(self, path: str) -> None:
        with self._request("delete", path):
            self.erase(path)
            self._lose_response()

    def persist(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.head(path)

    # ------------------------------------------------------------ the store's own side

    def create(self, path: str, data: bytes) -> bool:
        """What the server does with a create-only write; False when the name is taken."""
        if path in self._objects:
            return False
        self._set(path, data, change=Change.CREATED)
        return True

    def erase(self, path: str) -> None:
        """What the server does with a deletion."""
        found = self._objects.pop(path, None)
        if found is not None:
            self._record(Change.DELETED, path, *found)

    def _set(self, path: str, data: bytes, *, change: Change = Change.REPLACED) -> None:
        info = ObjectInfo(path=path, size_bytes=len(data), modified_ms=self._scheduler.now_ms)
        self._objects[path] = (data, info)
        self._record(change, path, data, info)

    def _record(self, change: Change, path: str, data: bytes, info: ObjectInfo) -> None:
        entry = Entry(change=change, path=path, data=data, info=info, at_us=self._scheduler.now_us)
        self.ledger.append(entry)
        self._scheduler.note(f"  {change} {path} ({len(data)} bytes)")

    def _deliver(self, path: str, data: bytes, fault: str) -> None:
        if fault:
            self._scheduler.note(f"  fault: {fault}")
        match fault:
            case "lost_request":
                raise AmbiguousWriteError("connection reset")
            case "late":
                delay = self._random.choice((0.0, 0.2, 5.0, LATE_SECONDS)) * self._random.random()
                self._scheduler.after(delay, lambda: self._arrive(path, data))
                raise AmbiguousWriteError("timed out")
            case "exists_unwritten":
                raise ObjectExistsError("409 ConditionalRequestConflict")
            case "unavailable":
                raise StorageError("503 SlowDown")
            case "denied":
                raise StorePermissionError("403 Forbidden")
        created = self.create(path, data)
        match fault:
            case "lost_response":
                raise AmbiguousWriteError("connection reset")
            case "internal":
                raise StorageError("500 InternalError")
            case "exists_mine":
                raise ObjectExistsError("412 PreconditionFailed")
            case "duplicate":
                delay = LATE_SECONDS * self._random.random()
                self._scheduler.after(delay, lambda: self._arrive(path, data))
        if not created:
            raise ObjectExistsError("412 PreconditionFailed")

    def _arrive(self, path: str, data: bytes) -> None:
        self._scheduler.note(f"late delivery of {path}")
        self.create(path, data)

    def _lose_response(self) -> None:
        if self._strikes("lost_response"):
            self._scheduler.note("  fault: lost_response")
            raise AmbiguousWriteError("connection reset")

    def _write_fault(self) -> str:
        return next((name for name in WRITE_FAULTS if self._strikes(name)), "")

    def _strikes(self, name: str) -> bool:
        rate: float = getattr(self.faults, name)
        return rate > 0.0 and self._random.random() < rate

    @contextmanager
    def _request(self, verb: str, path: str) -> Iterator[None]:
        """A request that either happens or fails, between two points where others may go on."""
        self._interrupt(verb, path)
        if self._strikes("read"):
            self._scheduler.note("  fault: 503")
            raise StorageError(f"503 SlowDown: {verb} {path}")
        yield
        self._interrupt(f"{verb} answered", path)

    def _interrupt(self, verb: str, path: str) -> None:
        """A scheduling point, at which the worker may be held, or end."""
        self._scheduler.note(f"{verb} {path}")
        if self._strikes("crash"):
            self._crash()
        if self._strikes("pause"):
            self._hold()
        else:
            self._scheduler.point()

    def _hold(self) -> None:
        seconds = self._random.choice(PAUSES) * self._random.random()
        self._scheduler.note(f"  fault: held for {seconds:.0f} s")
        self._scheduler.sleep(seconds)

    def _crash(self) -> NoReturn:
        self._scheduler.note("  fault: crash")
        self._scheduler.current.dead = True
        raise Crashed

    # ------------------------------------------------------------ weak consistency

    def _find(self, path: str) -> tuple[bytes, ObjectInfo]:
        hidden = self._hidden_until_us.get(path, 0) > self._scheduler.now_us
        if path in self._objects and not hidden:
            return self._objects[path]
        if not hidden and self._strikes("negative_cache"):
            self._hidden_until_us[path] = self._scheduler.now_us + int(60e6 * self._random.random())
        self._scheduler.note("  cached absence" if hidden else "  not found")
        raise ObjectNotFoundError(f"{path} does not exist")

    def _read_directory(self) -> list[ObjectInfo]:
        if self.remote or not self._strikes("torn_listing"):
            return self._listed()
        before = {info.path for info in self._listed()}
        for _ in range(self._random.randint(1, 20)):
            self._scheduler.point()
        found = self._listed()
        met = [info for info in found if info.path in before or self._random.random() < 0.5]
        self._scheduler.note(f"  fault: {len(found) - len(met)} names are made too late to be listed")
        return met

    def _listed(self) -> list[ObjectInfo]:
        if not self._strikes("stale_listing"):
            return [info for _, info in self._objects.values()]
        shown: dict[str, ObjectInfo] = {}
        length = self._random.randint(max(0, len(self.ledger) - 8), len(self.ledger))
        self._scheduler.note(f"  fault: listing as after {length} of {len(self.ledger)} changes")
        for entry in self.ledger[:length]:
            if entry.change is Change.DELETED:
                shown.pop(entry.path, None)
            else:
                shown[entry.path] = entry.info
        return list(shown.values())

    def _distorted(self, found: list[ObjectInfo]) -> list[ObjectInfo]:
        if self._strikes("truncated_listing"):
            if self._random.random() < 0.5:
                found = found[: self._random.randint(0, len(found))]
            else:
                found = [info for info in found if self._random.random() < 0.8]
            self._scheduler.note(f"  fault: listing cut to {len(found)} entries")
        if self._strikes("duplicated_listing"):
            found = sorted([*found, *found[:: self._random.randint(1, 3)]], key=lambda info: info.path)
        return found
