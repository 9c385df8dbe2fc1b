"""Deleting objects only if they have not changed since they were listed.

A store may have a method `delete_unchanged(objects)` that is faster than `head` and `delete` for each
object, marked with `@in_place_of(head, delete)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from delta_core.errors import ObjectNotFoundError
from delta_core.storage.log_store import LogStore, stand_in

SeenObject = tuple[str, int, int]
"""Path, size in bytes and modification time in milliseconds of an object when it was listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The result of a deletion.

    Attributes:
        files, size_bytes: count and total size of the deleted objects.
        changed: paths of the objects whose size or time had changed, so that they were kept.
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
    """Delete objects whose size and time have not changed. A missing object is not an error.

    At most two requests each; the deletion directly follows the request that shows the object unchanged.

    Raises:
        StorageError: an object could not be checked or deleted; the objects before it are deleted.
    """
    own = stand_in(store, "delete_unchanged")
    if own is None:
        return delete_one_by_one(store, objects)
    deleted: Deleted = own(objects)
    return deleted


def delete_one_by_one(store: LogStore, objects: Iterable[SeenObject]) -> Deleted:
    """As `delete_unchanged`, with `head` and `delete` of any store."""
    files = size_total = 0
    changed = []
    for path, size_bytes, modified_ms in objects:
        try:
            info = store.head(path)
        except ObjectNotFoundError:
            continue
        if (info.size_bytes, info.modified_ms) != (size_bytes, modified_ms):
            changed.append(path)
            continue
        store.delete(path)
        files += 1
        size_total += size_bytes
    return Deleted(files=files, size_bytes=size_total, changed=tuple(changed))
