"""Giving an object the time that another store says of it, where a store can do that.

A file system can. In object stores the time is the store's own, of the write, and nobody sets it.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from delta_core.storage.log_store import LogStore


@runtime_checkable
class KeepsModifiedTimes(Protocol):
    """A store that lets others say when its objects were written."""

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the time of an object. Raises ObjectNotFoundError."""
        ...


def keep_modified_time(store: LogStore, path: str, modified_ms: int) -> bool:
    """Set an object's time; False where the store cannot. At most one request.

    Raises:
        ObjectNotFoundError: there is no such object.
        StorageError: the store refuses.
    """
    if not isinstance(store, KeepsModifiedTimes):
        return False
    store.set_modified_ms(path, modified_ms)
    return True
