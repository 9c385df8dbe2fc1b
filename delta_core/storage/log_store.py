"""The one interface to a store.

A `LogStore` is rooted at a table: every path is relative to the table root, uses `/`, is decoded (no
percent-escapes) and stays below the root. It knows bytes and names, nothing about Delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from delta_core.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

_FETCH_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    """One object: its path relative to the table root, size in bytes, and the store's write time.

    Attributes:
        etag: what the store calls this content of the object; None where it has no such name. Not compared:
            stores spell it differently in a listing and in an answer about one object.
    """

    path: str
    size_bytes: int
    modified_ms: int
    etag: str | None = field(default=None, compare=False)


class LogStore(Protocol):
    """Objects below one table root.

    Guarantees every implementation gives (checked by the contract suite in `delta_core.testing`):
    an object appears whole or not at all; of any number of concurrent `put_if_absent` calls for one
    path exactly one returns normally; what a call has written survives a crash once it has returned.
    """

    @property
    def uri(self) -> str:
        """The table root's canonical URI, without a trailing slash."""
        ...

    @property
    def consistent_listing(self) -> bool:
        """True when a listing shows every object whose write returned before the listing began."""
        ...

    @property
    def remote(self) -> bool:
        """True when each request costs a round trip.

        Then what is known to be needed is asked for side by side, log objects are fetched whole, and a cache
        of them pays.
        """
        ...

    def read(self, path: str) -> bytes:
        """The whole object as it is now, and never a part of it. One request.

        Raises:
            ObjectNotFoundError: it does not exist.
            StorageError: among others, because fewer bytes arrived than the object has.
        """
        ...

    def head(self, path: str) -> ObjectInfo:
        """Size and time of one object. Raises ObjectNotFoundError. One request."""
        ...

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """The objects directly in a directory, sorted by name; a missing directory is empty.

        Args:
            path: directory relative to the root; `""` is the root itself.
            start_after: only names (not paths) strictly greater than this.
        """
        ...

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """Every object below a directory, in no particular order. Symbolic links are not followed."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object, never replace it. One attempt, no retry inside.

        Raises:
            ObjectExistsError: the name is taken (perhaps by an earlier attempt of the same caller).
            AmbiguousWriteError: it cannot be told whether the object was created.
            StorePermissionError, NameBlockedError, WriteRefusedError, UnsafeStoreError: refused; nothing was
                created, and asking again does not help.
            NotWrittenError: it failed before it could take effect: nothing was created, nor will be later.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or atomically replace the object."""
        ...

    def delete(self, path: str) -> None:
        """Delete the object; deleting a missing one is not an error."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader. Raises ObjectNotFoundError."""
        ...

    def open_whole(self, path: str) -> pa.NativeFile:
        """A seekable reader of an object that will be read nearly whole.

        At most one request, made now, however it is read. Raises ObjectNotFoundError.
        """
        ...

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A writer whose object appears, durable, when the context ends normally; not if it raises."""
        ...

    def persist(self, paths: Sequence[str]) -> None:
        """Make objects durable of which that is not known.

        That is what others wrote past this store, such as Spark's tasks, and what a `put_if_absent` left
        behind that raised AmbiguousWriteError: reading it back shows that it is there, not that it is there
        after a loss of power. Must return before a commit names them, or is called committed. Where a write
        is durable as soon as it can be read, as in object stores, only that they are there is checked.

        Raises:
            ObjectNotFoundError: one is gone.
            StorageError: they are not durable.
        """
        ...


def fetch_listed(info: ObjectInfo, fetch: Callable[[], bytes]) -> bytes:
    """An object that is never replaced, when it has the size that a listing gave; fetched again until then.

    Raises:
        StorageError: it has another size each time: a part arrived, or the listing is of another object.
    """
    found_bytes = 0
    for _ in range(_FETCH_TRIES):
        data = fetch()
        if len(data) == info.size_bytes:
            return data
        found_bytes = len(data)
    raise StorageError(
        f"{info.path!r} did not arrive as it was listed.",
        cause=f"{found_bytes} bytes arrived instead of {info.size_bytes}: only a part of it, "
        "or it was replaced since.",
        fix="Load the table again; if that does not help, compare the file with a backup.",
    )


def read_immutable(store: LogStore, path: str) -> bytes:
    """The whole of an object that is never replaced: from a cache if the store has one.

    Not for a commit that decides who won: see `LogStore.read`. Raises ObjectNotFoundError.
    """
    if not store.remote:
        return store.read(path)
    with store.open_whole(path) as source:
        return bytes(source.read())
