"""A bounded cache of immutable objects on the local disk, shared by processes.

An entry is one file: the content and a digest of it, so that a torn or changed entry is detected and
deleted. Entries are created under a temporary name and renamed. Eviction deletes the entries that were read
longest ago. Deleting any entries, or the whole folder, at any time only costs requests.
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
    """Counters of a cache in this process. `damaged` entries are included in the misses."""

    hits: int
    misses: int
    damaged: int
    stored: int
    evicted: int


class DiskCache:
    """Immutable objects by key, on the local disk.

    Args:
        directory: the directory of the entries; created when the first entry is stored.
        max_bytes: eviction begins above this size.
        clock: used to find unfinished entries that no process writes any more.
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
        self._stored_since_check = max_bytes  # check the size at the first `put`

    @property
    def statistics(self) -> CacheStatistics:
        """The counters since this object was created."""
        with self._lock:
            return CacheStatistics(**self._counts)

    def get(self, key: str) -> pa.Buffer | None:
        """The object, memory-mapped and checked; None when it is not cached. No request."""
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
            os.utime(path)  # the time of use, for eviction
        self._count("hits")
        return content

    def put(self, key: str, data: bytes | pa.Buffer) -> None:
        """Cache an object. When the disk is full or not writable, the object is silently not cached."""
        if len(data) + _DIGEST_BYTES + len(_FORMAT) > self.max_bytes:
            return
        path = self._path(key)
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            # Only users who may read the table may read the content of its log.
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
            self._stored_since_check += len(data)
            due = self._stored_since_check > self.max_bytes // 8
            if due:
                self._stored_since_check = 0
        if due:
            self._evict()

    def _evict(self) -> None:
        """Evict down to a share of the maximum, by time of use. Other processes may do the same."""
        self._delete_abandoned()
        entries = []
        for path in self.directory.glob(f"*/*{_SUFFIX}"):
            with suppress(OSError):
                info = path.stat()
                entries.append((info.st_mtime_ns, info.st_size, path))
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

    def _delete_abandoned(self) -> None:
        """Delete the unfinished entries of processes that were killed."""
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
    # The key is part of the digest, so that an entry under the name of another key is detected.
    return hashlib.blake2b(
        data, digest_size=_DIGEST_BYTES, key=hashlib.sha256(key.encode()).digest()
    ).digest()


def _content(whole: pa.Buffer, key: str) -> pa.Buffer | None:
    length = whole.size - _DIGEST_BYTES - len(_FORMAT)
    if length < 0 or whole.slice(length + _DIGEST_BYTES).to_pybytes() != _FORMAT:
        return None
    content = whole.slice(0, length)
    return content if _digest(content, key) == whole.slice(length, _DIGEST_BYTES).to_pybytes() else None
