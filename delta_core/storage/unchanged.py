"""Deleting objects that are still those that somebody has looked at.

A store may have a method `delete_unchanged(objects)` that is faster than a look at each object and its
deletion, marked as in place of `head` and `delete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from delta_core.errors import ObjectNotFoundError
from delta_core.storage.log_store import LogStore
from delta_core.storage.stand_in import stand_in

SeenObject = tuple[str, int, int]
"""Path, size in bytes and time in milliseconds, as they were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What came of it.

    Attributes:
        files, size_bytes: of those that are deleted now.
        changed: paths of those that had another size or time, and stay.
    """

    files: int = 0
    size_bytes: int = 0
    changed: tuple[str, ...] = ()

    def __add__(self, other: Deleted) -> Deleted:
        return Deleted(
            files=self.files + other.files,
            size_bytes=self.size_bytes + other.size_bytes,
            changed=self.changed + other.changed,
        )


def delete_unchanged(store: LogStore, objects: Sequence[SeenObject]) -> Deleted:
    """Delete objects whose size and time are those that were seen; one that is gone is no error.

    At most two requests for each, the second right after the first, which shows that it is unchanged.

    Raises:
        StorageError: one could not be looked at or deleted; those before it are deleted.
    """
    own = stand_in(store, "delete_unchanged")
    if own is None:
        return delete_one_by_one(store, objects)
    found: Deleted = own(objects)
    return found


def delete_one_by_one(store: LogStore, objects: Iterable[SeenObject]) -> Deleted:
    """As `delete_unchanged`, by `head` and `delete` of any store."""
    files = size_total = 0
    changed = []
    for path, size_bytes, modified_ms in objects:
        try:
            found = store.head(path)
        except ObjectNotFoundError:
            continue
        if (found.size_bytes, found.modified_ms) != (size_bytes, modified_ms):
            changed.append(path)
            continue
        store.delete(path)
        files += 1
        size_total += size_bytes
    return Deleted(files=files, size_bytes=size_total, changed=tuple(changed))
