"""A remote store whose immutable log objects are kept on the local disk.

Commits, checkpoints, compactions, checksums and sidecars never change under their names while their table
lives. A table that was dropped and made anew under the same URI has other objects under the same names, so
an entry's key holds the size, time and entity tag that the store gave in the listing; what was not listed is
not kept. Sidecars are not listed, but their names are unique. `read` always asks the store: a commit that
is looked at to learn who won must be the one that is there now.

Only what is whole is kept: what was listed has the size that was listed, and a sidecar the two ends of a
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
from delta_core.storage.disk_cache import DEFAULT_MAX_BYTES, DiskCache
from delta_core.storage.listed_files import ListedFiles, walk_batches
from delta_core.storage.log_store import LogStore, ObjectInfo, fetch_listed
from delta_core.storage.stand_in import in_place_of
from delta_core.storage.unchanged import Deleted, SeenObject, delete_unchanged

_LOG = "_delta_log/"
_SIDECARS = f"{_LOG}_sidecars/"
_PARQUET_MAGIC = b"PAR1"
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class CachedLogStore:
    """Wraps a remote store; writes, listings and data files go straight to it."""

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
        """As the store."""
        return self.inner.consistent_listing

    @property
    def remote(self) -> bool:
        """As the store."""
        return self.inner.remote

    # ------------------------------------------------------------ reads

    def read(self, path: str) -> bytes:
        """As the store, never from the cache."""
        return self.inner.read(path)

    def open_whole(self, path: str) -> pa.NativeFile:
        """A reader of the whole object; no request when it is in the cache.

        Raises:
            ObjectNotFoundError: it does not exist.
            StorageError: among others, because it has not the size that was listed.
        """
        key = self._key(path)
        if key is None:
            return self.inner.open_whole(path)
        with self._lock:
            info = self._listed.get(path)
        found = self.cache.get(key)
        if found is None or (info is None and not _is_whole_parquet(found)):
            read = partial(self.inner.read, path)
            found = pa.py_buffer(read() if info is None else fetch_listed(info, read))
            if info is not None or _is_whole_parquet(found):
                self.cache.put(key, found)
        return pa.BufferReader(found)

    def derived_columns(self, path: str) -> DerivedColumns | None:
        """Where what is worked out from an object is kept; None where it may change.

        It is the object that was listed last, which need not be the one that the caller has read: bind it to
        those bytes with `of_content`.
        """
        key = self._key(path)
        return None if key is None else DerivedColumns(cache=self.cache, key=key)

    def _key(self, path: str) -> str | None:
        with self._lock:
            info = self._listed.get(path)
        if info is None:
            return f"{self.uri}\n{path}" if _is_sidecar(path) else None
        return f"{self.uri}\n{path}\n{info.size_bytes}\n{info.modified_ms}\n{info.etag or ''}"

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """As the store; what is listed in the log may be kept from now on."""
        found = self.inner.list_directory(path, start_after=start_after)
        if f"{path}/" == _LOG:
            with self._lock:
                self._listed.update((info.path, info) for info in found if _is_immutable(info.path))
        return found

    def head(self, path: str) -> ObjectInfo:
        """As the store."""
        return self.inner.head(path)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """As the store."""
        return self.inner.walk(path)

    @in_place_of(walk)
    def walk_batches(self, path: str = "") -> Iterator[ListedFiles]:
        """As the store."""
        return walk_batches(self.inner, path)

    def open_input(self, path: str) -> pa.NativeFile:
        """As the store."""
        return self.inner.open_input(path)

    # ------------------------------------------------------------ writes

    def put_if_absent(self, path: str, data: bytes) -> None:
        """As the store."""
        self.inner.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        """As the store."""
        self.inner.put(path, data)

    def delete(self, path: str) -> None:
        """As the store."""
        self.inner.delete(path)

    @in_place_of(head, delete)
    def delete_unchanged(self, objects: Sequence[SeenObject]) -> Deleted:
        """As the store."""
        return delete_unchanged(self.inner, objects)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """As the store."""
        return self.inner.open_output(path)

    def persist(self, paths: Sequence[str]) -> None:
        """As the store."""
        self.inner.persist(paths)


def derived_columns(store: LogStore, path: str) -> DerivedColumns | None:
    """Where what is worked out from an object is kept for other processes; None where there is no cache."""
    return store.derived_columns(path) if isinstance(store, CachedLogStore) else None


def with_shared_cache(store: LogStore, *, environment: Mapping[str, str] | None = None) -> LogStore:
    """The store with the cache that all processes of a user share; a local one as it is.

    `DELTAWARD_CACHE` names its directory (by default `deltaward` in the user's cache directory),
    `DELTAWARD_CACHE_BYTES` bounds it (2 GiB); 0 turns it off.

    Raises:
        ConfigurationError: the bound is not a number of bytes.
    """
    if not store.remote:
        return store
    values = os.environ if environment is None else environment
    text = values.get("DELTAWARD_CACHE_BYTES") or str(DEFAULT_MAX_BYTES)
    if not text.isdecimal():
        raise ConfigurationError(
            f"DELTAWARD_CACHE_BYTES is {text!r}.",
            cause="It is no number of bytes.",
            fix="Set it to a whole number, or to 0 to turn the cache off.",
        )
    if int(text) == 0:
        return store
    base = values.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = values.get("DELTAWARD_CACHE") or os.path.join(base, "deltaward")
    return CachedLogStore(store, _shared(directory, int(text)))


def without_cache(store: LogStore) -> LogStore:
    """The store behind the cache: every call asks it, and nothing is kept."""
    return store.inner if isinstance(store, CachedLogStore) else store


@cache
def _shared(directory: str, max_bytes: int) -> DiskCache:
    """One for each directory and process, so that what it counts is counted together."""
    return DiskCache(directory, max_bytes=max_bytes)


def _is_sidecar(path: str) -> bool:
    """Whether a path is a sidecar's, whose name says that no other file ever has it."""
    return path.startswith(_SIDECARS) and path.endswith(".parquet") and _UUID.search(path) is not None


def _is_whole_parquet(data: pa.Buffer) -> bool:
    """Whether data has the two ends of a Parquet file and room for the footer between them."""
    if data.size < 3 * len(_PARQUET_MAGIC):
        return False
    end = data.slice(data.size - 2 * len(_PARQUET_MAGIC)).to_pybytes()
    footer_bytes = int.from_bytes(end[:4], "little")
    whole: bool = data.slice(0, 4).to_pybytes() == end[4:] == _PARQUET_MAGIC
    return whole and footer_bytes <= data.size - 3 * len(_PARQUET_MAGIC)


def _is_immutable(path: str) -> bool:
    name = path.removeprefix(_LOG)
    return name[:20].isdigit() and name.endswith((".json", ".parquet", ".crc"))
