"""Never back: on a store whose listings lag, a process does not show a version older than one it has seen.

Where a listing shows every finished write nothing has to be remembered, and nothing is.
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
    """The highest version that was seen or committed of each of the last tables; for threads.

    A table that was made anew at the same place has another id, and begins from nothing.
    """

    def __init__(self, *, max_tables: int = 1000) -> None:
        self._max_tables = max_tables
        self._floors: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    def note(self, store: LogStore, table_id: str, version: int) -> None:
        """A version was seen."""
        if store.consistent_listing:
            return
        key = self._key(store)
        with self._lock:
            known_id, known = self._floors.pop(key, (table_id, -1))
            self._floors[key] = (table_id, max(version, known) if known_id == table_id else version)
            while len(self._floors) > self._max_tables:
                self._floors.popitem(last=False)

    def floor(self, store: LogStore, table_id: str | None = None) -> int:
        """The version below which the table cannot be; -1 when nothing is known of it.

        Args:
            table_id: of the table that is looked at now; None takes whichever was there.
        """
        with self._lock:
            known_id, known = self._floors.get(self._key(store), ("", -1))
        return known if table_id in (None, known_id) else -1

    def forget(self, store: LogStore) -> None:
        """Nothing is known any more of the table at this place."""
        with self._lock:
            self._floors.pop(self._key(store), None)

    def _key(self, store: LogStore) -> str:
        return store.uri


FLOORS = MonotonicVersions()
"""What this process has seen."""


def note_version(store: LogStore, table_id: str, version: int) -> None:
    """This process has seen, or committed, a version of a table."""
    FLOORS.note(store, table_id, version)


def load_monotonic(store: LogStore, clock: Clock, load: Callable[[], Snapshot]) -> Snapshot:
    """The latest version that `load` finds, tried again while it is one from before.

    Raises:
        StaleListingError: it stayed below what this process has seen.
    """
    if store.consistent_listing:
        return load()
    for remaining in range(_TRIES - 1, -1, -1):
        try:
            snapshot = load()
        except TableNotFoundError:
            if FLOORS.floor(store) < 0 or not remaining:
                raise
        else:
            floor = FLOORS.floor(store, snapshot.metadata.id)
            if snapshot.version >= floor:
                FLOORS.note(store, snapshot.metadata.id, snapshot.version)
                return snapshot
        if remaining:
            clock.sleep(_PAUSE_SECONDS * 2 ** (_TRIES - 1 - remaining))
    raise StaleListingError(
        f"The store shows {store.uri!r} as it was before.",
        cause=f"It lists version {snapshot.version}, and this process has seen version {floor}.",
        fix="Try again in a while; if it stays so, somebody has put back an older copy of the log.",
    )
