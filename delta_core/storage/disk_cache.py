"""A bounded cache of immutable objects on the local disk, shared by processes.

An entry is one file: its content and then a digest of it, so that a torn or changed one is found out and
dropped. Entries are created under a temporary name and renamed; those read longest ago go first. Deleting
any of them, or the whole folder, at any time costs requests and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.forks import renew_lock_in_children

DEFAULT_MAX_BYTES = 2 << 30

_FORMAT = b"deltaward-cache-1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".object"
_KEPT_SHARE = 0.8
_ABANDONED_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatistics:
    """What a cache has done in this process; `damaged` entries count as misses, too."""

    hits: int
    misses: int
    damaged: int
    stored: int
    evicted: int


class DiskCache:
    """Objects by key.

    Args:
        directory: where the entries are; made when the first one is stored.
        max_bytes: evicting begins above this size.
        clock: tells which unfinished entries nobody is writing any more.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.directory = Path(directory)
        self._clock = clock
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._counts = dict.fromkeys(("hits", "misses", "damaged", "stored", "evicted"), 0)
        self._stored_since_look = max_bytes  # look at the first occasion

    @property
    def statistics(self) -> CacheStatistics:
        """Hits and misses so far."""
        with self._lock:
            return CacheStatistics(**self._counts)

    def get(self, key: str) -> pa.Buffer | None:
        """The object, mapped into memory and checked; None when it is not there. No request."""
        path = self._path(key)
        try:
            with pa.memory_map(str(path), "r") as mapped:
                whole = mapped.read_buffer()
        except (OSError, pa.ArrowException):
            self._count("misses")
            return None
        content = _content(whole, key)
        if content is None:
            with suppress(OSError):
                path.unlink()
            self._count("damaged", "misses")
            return None
        with suppress(OSError):
            os.utime(path)  # when it was used, for eviction
        self._count("hits")
        return content

    def put(self, key: str, data: bytes | pa.Buffer) -> None:
        """Keep an object. A disk that is full or not writable is not an error: then nothing is kept."""
        if len(data) + _DIGEST_BYTES + len(_FORMAT) > self.max_bytes:
            return
        path = self._path(key)
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            # What a table's log says is for those who may read the table.
            for folder in (self.directory, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(temporary, "wb", opener=_private) as file:
                file.write(memoryview(data))
                file.write(_digest(data, key))
                file.write(_FORMAT)
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            return
        self._count("stored")
        with self._lock:
            self._stored_since_look += len(data)
            due = self._stored_since_look > self.max_bytes // 8
            if due:
                self._stored_since_look = 0
        if due:
            self._evict()

    def _evict(self) -> None:
        """Down to a share of the bound, by time of use. Other processes may do the same meanwhile."""
        self._end_abandoned()
        entries = []
        for path in self.directory.glob(f"*/*{_SUFFIX}"):
            with suppress(OSError):
                found = path.stat()
                entries.append((found.st_mtime_ns, found.st_size, path))
        total = sum(size for _, size, _ in entries)
        if total <= self.max_bytes:
            return
        for _, size, path in sorted(entries):
            with suppress(OSError):
                path.unlink()
                self._count("evicted")
            total -= size
            if total <= self.max_bytes * _KEPT_SHARE:
                return

    def _end_abandoned(self) -> None:
        """What a process that was killed had begun to write."""
        now = self._clock.now_ms() / 1000
        for path in self.directory.glob("*/.*.tmp"):
            with suppress(OSError):
                if now - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self.directory / name[:2] / f"{name}{_SUFFIX}"

    def _count(self, *names: str) -> None:
        with self._lock:
            for name in names:
                self._counts[name] += 1


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _digest(data: bytes | pa.Buffer, key: str) -> bytes:
    # With the key in it, an entry under another's name does not pass.
    return hashlib.blake2b(
        data, digest_size=_DIGEST_BYTES, key=hashlib.sha256(key.encode()).digest()
    ).digest()


def _content(whole: pa.Buffer, key: str) -> pa.Buffer | None:
    length = whole.size - _DIGEST_BYTES - len(_FORMAT)
    if length < 0 or whole.slice(length + _DIGEST_BYTES).to_pybytes() != _FORMAT:
        return None
    content = whole.slice(0, length)
    return content if _digest(content, key) == whole.slice(length, _DIGEST_BYTES).to_pybytes() else None
