"""A remote store with a cache of immutable log objects on the local disk.

The content of a commit, checkpoint, log compaction, checksum or sidecar never changes while its table
exists. A table that was dropped and created again under the same URI has other objects under the same names.
The key of a cache entry therefore contains the size, time and entity tag from the listing, and objects that
were not listed are not cached. Sidecars are not listed, but their names are unique. `read` always asks the
store: a reader that checks which writer won needs the commit that exists now.

Only complete objects are cached: a listed object has its listed size, and a sidecar starts and ends like a
Parquet file.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial

import pyarrow as pa

from delta_core.errors import ConfigurationError
from delta_core.forks import renew_lock_in_children
from delta_core.storage.derived_columns import DerivedColumns
from delta_core.storage.directories import list_directories
from delta_core.storage.disk_cache import DEFAULT_MAX_BYTES, DiskCache
from delta_core.storage.listed_files import ListedFiles, walk_batches
from delta_core.storage.log_store import LogStore, ObjectInfo, fetch_listed, in_place_of, parent_store
from delta_core.storage.unchanged import Deleted, SeenObject, delete_unchanged

_LOG = "_delta_log/"
_SIDECARS = f"{_LOG}_sidecars/"
_PARQUET_MAGIC = b"PAR1"
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class CachedLogStore:
    """A wrapper of a remote store. Writes, listings and data files are not cached."""

    def __init__(self, inner: LogStore, cache: DiskCache) -> None:
        self.inner = inner
        self.cache = cache
        self._lock = threading.Lock()
        renew_lock_in_children(self)
        self._listed: dict[str, ObjectInfo] = {}

    def __repr__(self) -> str:
        return f"CachedLogStore({self.inner!r})"

    @property
    def uri(self) -> str:
        """The table root's canonical URI."""
        return self.inner.uri

    @property
    def consistent_listing(self) -> bool:
        """The value of the wrapped store."""
        return self.inner.consistent_listing

    @property
    def remote(self) -> bool:
        """The value of the wrapped store."""
        return self.inner.remote

    def parent(self) -> LogStore | None:
        """The store of the directory above the wrapped store, with the same cache."""
        above = parent_store(self.inner)
        return None if above is None else CachedLogStore(above, self.cache)

    # ------------------------------------------------------------ reads

    def read(self, path: str) -> bytes:
        """The complete object as it is now, from the store and never from the cache."""
        return self.inner.read(path)

    def open_whole(self, path: str) -> pa.NativeFile:
        """A reader of the whole object; no request when it is in the cache.

        Raises:
            ObjectNotFoundError: it does not exist.
            StorageError: also when the object does not have its listed size.
        """
        key = self._key(path)
        if key is None:
            return self.inner.open_whole(path)
        with self._lock:
            info = self._listed.get(path)
        data = self.cache.get(key)
        if data is None or (info is None and not _is_whole_parquet(data)):
            read = partial(self.inner.read, path)
            data = pa.py_buffer(read() if info is None else fetch_listed(info, read))
            if info is not None or _is_whole_parquet(data):
                self.cache.put(key, data)
        return pa.BufferReader(data)

    def derived_columns(self, path: str) -> DerivedColumns | None:
        """The cache for columns derived from an object; None when the object may change.

        The entry belongs to the object that was listed last, which may differ from the object that the caller
        has read. Bind the entry to the bytes that were read with `of_content`.
        """
        key = self._key(path)
        return None if key is None else DerivedColumns(cache=self.cache, key=key)

    def _key(self, path: str) -> str | None:
        with self._lock:
            info = self._listed.get(path)
        if info is None:
            return f"{self.uri}\n{path}" if _is_sidecar(path) else None
        return f"{self.uri}\n{path}\n{info.size_bytes}\n{info.modified_ms}\n{info.etag or ''}"

    def list_directories(self, path: str) -> list[str]:
        """The names of the directories directly in a directory, from the store."""
        return list_directories(self.inner, path)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """List a directory of the store. Objects of the log that are listed may be cached from then on."""
        infos = self.inner.list_directory(path, start_after=start_after)
        if f"{path}/" == _LOG:
            with self._lock:
                self._listed.update((info.path, info) for info in infos if _is_immutable(info.path))
        return infos

    def head(self, path: str) -> ObjectInfo:
        """Size and time of one object, from the store."""
        return self.inner.head(path)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """Every object of the store below a directory."""
        return self.inner.walk(path)

    @in_place_of(walk)
    def walk_batches(self, path: str = "") -> Iterator[ListedFiles]:
        """As `walk`, in columns."""
        return walk_batches(self.inner, path)

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader of the object in the store, without the cache."""
        return self.inner.open_input(path)

    # ------------------------------------------------------------ writes

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object in the store, never replace it."""
        self.inner.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace the object in the store."""
        self.inner.put(path, data)

    def delete(self, path: str) -> None:
        """Delete the object from the store; a missing one is not an error."""
        self.inner.delete(path)

    @in_place_of(head, delete)
    def delete_unchanged(self, objects: Sequence[SeenObject]) -> Deleted:
        """Delete the objects of the store that have not changed since they were listed."""
        return delete_unchanged(self.inner, objects)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A writer whose object appears in the store when the context ends normally."""
        return self.inner.open_output(path)

    def persist(self, paths: Sequence[str]) -> None:
        """Make objects durable in the store."""
        self.inner.persist(paths)


def derived_columns(store: LogStore, path: str) -> DerivedColumns | None:
    """The cache for columns derived from an object, shared by processes; None when the store has no cache."""
    return store.derived_columns(path) if isinstance(store, CachedLogStore) else None


def with_shared_cache(store: LogStore, *, environment: Mapping[str, str] | None = None) -> LogStore:
    """The store with the cache that all processes of a user share. A local store has no cache.

    `DELTAWARD_CACHE` is its directory (by default `deltaward` in the user's cache directory).
    `DELTAWARD_CACHE_BYTES` is its maximum size (by default 2 GiB); 0 turns the cache off.

    Raises:
        ConfigurationError: `DELTAWARD_CACHE_BYTES` is not a number of bytes.
    """
    if not store.remote:
        return store
    values = os.environ if environment is None else environment
    max_bytes_string = values.get("DELTAWARD_CACHE_BYTES") or str(DEFAULT_MAX_BYTES)
    if not max_bytes_string.isdecimal():
        raise ConfigurationError(
            f"DELTAWARD_CACHE_BYTES cannot be {max_bytes_string!r}.",
            cause="The value is not a number of bytes.",
            fix="Set it to a whole number, or to 0 to turn the cache off.",
        )
    if int(max_bytes_string) == 0:
        return store
    base = values.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = values.get("DELTAWARD_CACHE") or os.path.join(base, "deltaward")
    return CachedLogStore(store, _shared(directory, int(max_bytes_string)))


def without_cache(store: LogStore) -> LogStore:
    """The store behind the cache. Every call asks the store, and nothing is cached."""
    return store.inner if isinstance(store, CachedLogStore) else store


@cache
def _shared(directory: str, max_bytes: int) -> DiskCache:
    """The only cache of a directory in this process, so that its statistics cover all stores."""
    return DiskCache(directory, max_bytes=max_bytes)


def _is_sidecar(path: str) -> bool:
    """Whether a path is a sidecar with a UUID in its name, which no other file ever has."""
    return path.startswith(_SIDECARS) and path.endswith(".parquet") and _UUID.search(path) is not None


def _is_whole_parquet(data: pa.Buffer) -> bool:
    """Whether data starts and ends like a Parquet file and has room for the footer between the ends."""
    if data.size < 3 * len(_PARQUET_MAGIC):
        return False
    end = data.slice(data.size - 2 * len(_PARQUET_MAGIC)).to_pybytes()
    footer_bytes = int.from_bytes(end[:4], "little")
    whole: bool = data.slice(0, 4).to_pybytes() == end[4:] == _PARQUET_MAGIC
    return whole and footer_bytes <= data.size - 3 * len(_PARQUET_MAGIC)


def _is_immutable(path: str) -> bool:
    name = path.removeprefix(_LOG)
    return name[:20].isdigit() and name.endswith((".json", ".parquet", ".crc"))
