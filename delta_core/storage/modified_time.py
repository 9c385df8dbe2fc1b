"""Setting the modification time of an object to the time in another store, where a store supports it.

A file system supports it. In object stores the time of the write is fixed.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from delta_core.storage.log_store import LogStore


@runtime_checkable
class SetsModifiedTimes(Protocol):
    """A store that can set the modification time of its objects."""

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the modification time of an object. Raises ObjectNotFoundError."""
        ...


def set_modified_time(store: LogStore, path: str, modified_ms: int) -> bool:
    """Set an object's modification time; False when the store does not support it. At most one request.

    Raises:
        ObjectNotFoundError: the object does not exist.
        StorageError: the store refused.
    """
    if not isinstance(store, SetsModifiedTimes):
        return False
    store.set_modified_ms(path, modified_ms)
    return True
