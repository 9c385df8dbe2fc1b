"""Monotonic reads: a process never returns a latest version that is older than one it has seen before.

This needs a record only on stores with eventually consistent listings. Other stores are not recorded.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from delta_core.clock import Clock
from delta_core.errors import StaleListingError, TableNotFoundError
from delta_core.forks import renew_lock_in_children
from delta_core.storage.log_store import LogStore

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot

_TRIES = 5
_PAUSE_SECONDS = 0.1


class MonotonicVersions:
    """The highest version of each recently used table that this process read or committed. Thread-safe.

    A table that was recreated at the same URI has another id, so its record starts again.
    """

    def __init__(self, *, max_tables: int = 1000) -> None:
        self._max_tables = max_tables
        self._floors: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    def note(self, store: LogStore, table_id: str, version: int) -> None:
        """Record a version that was read or committed."""
        if store.consistent_listing:
            return
        key = self._key(store)
        with self._lock:
            known_id, known = self._floors.pop(key, (table_id, -1))
            self._floors[key] = (table_id, max(version, known) if known_id == table_id else version)
            while len(self._floors) > self._max_tables:
                self._floors.popitem(last=False)

    def floor(self, store: LogStore, table_id: str | None = None) -> int:
        """The recorded version of the table, below which it cannot be; -1 without a record.

        Args:
            store: the table's store.
            table_id: the id of the current table; None accepts the record of any table at this URI.
        """
        with self._lock:
            known_id, known = self._floors.get(self._key(store), ("", -1))
        return known if table_id in (None, known_id) else -1

    def forget(self, store: LogStore) -> None:
        """Drop the record of the table at this URI."""
        with self._lock:
            self._floors.pop(self._key(store), None)

    def _key(self, store: LogStore) -> str:
        return store.uri


KNOWN_VERSIONS = MonotonicVersions()
"""The versions that this process has read or committed."""


def note_version(store: LogStore, table_id: str, version: int) -> None:
    """Record a version of a table that this process has read or committed."""
    KNOWN_VERSIONS.note(store, table_id, version)


def load_monotonic(store: LogStore, clock: Clock, load: Callable[[], Snapshot]) -> Snapshot:
    """The latest version that `load` finds. Retries while it is older than a version seen before.

    Raises:
        StaleListingError: the version stayed below one that this process has seen.
    """
    if store.consistent_listing:
        return load()
    for remaining in range(_TRIES - 1, -1, -1):
        try:
            snapshot = load()
        except TableNotFoundError:
            if KNOWN_VERSIONS.floor(store) < 0 or not remaining:
                raise
        else:
            floor = KNOWN_VERSIONS.floor(store, snapshot.metadata.id)
            if snapshot.version >= floor:
                KNOWN_VERSIONS.note(store, snapshot.metadata.id, snapshot.version)
                return snapshot
        if remaining:
            clock.sleep(_PAUSE_SECONDS * 2 ** (_TRIES - 1 - remaining))
    raise StaleListingError(
        f"The store lists an outdated version of {store.uri!r}.",
        cause=f"It lists version {snapshot.version}, and this process has seen version {floor}.",
        fix="Load the table again later. If the error persists, check whether an older log was restored.",
    )
