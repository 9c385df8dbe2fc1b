"""The interface to a store.

A `LogStore` is rooted at a table: every path is relative to the table root, uses `/`, is decoded (no
percent-escapes) and stays below the root. It handles bytes and names, and has no knowledge of Delta.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from delta_core.errors import PathEscapeError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa

_FETCH_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    """One object: its path relative to the table root, size in bytes, and the store's write time.

    Attributes:
        etag: the store's tag for this content of the object; None when the store has no tags. Not compared:
            stores spell the tag differently in a listing and in a response about one object.
    """

    path: str
    size_bytes: int
    modified_ms: int
    etag: str | None = field(default=None, compare=False)


class LogStore(Protocol):
    """Objects below one table root.

    Every implementation guarantees the following (`delta_core.conformance.LogStoreContract` checks it):
    readers see a complete object or no object; of any number of concurrent `put_if_absent` calls for one
    path exactly one returns normally; the effect of a call that has returned survives a crash.
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

        Requests for a remote store run in parallel, log objects are read as a whole, and a cache of log
        objects is useful.
        """
        ...

    def read(self, path: str) -> bytes:
        """The complete object as it is now, never a part of it. One request.

        Raises:
            ObjectNotFoundError: it does not exist.
            StorageError: also when fewer bytes arrived than the object has.
        """
        ...

    def head(self, path: str) -> ObjectInfo:
        """Size and time of one object. Raises ObjectNotFoundError. One request."""
        ...

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """The objects directly in a directory, sorted by name; a missing directory is empty.

        Args:
            path: directory relative to the root; `""` is the root itself.
            start_after: return only names (not paths) strictly greater than this.
        """
        ...

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """Every object below a directory, in no particular order. Symbolic links are not followed."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object, never replace it. One attempt, no retry inside.

        Raises:
            ObjectExistsError: the name is taken (perhaps by an earlier attempt of the same caller).
            AmbiguousWriteError: it is not known whether the object was created.
            StorePermissionError, NameBlockedError, WriteRefusedError, UnsafeStoreError: refused; nothing was
                created, and a retry does not help.
            NotWrittenError: the call failed before it could take effect; nothing is created later either.
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
        """A seekable reader of an object that will be read almost completely.

        Makes at most one request, at the call. Raises ObjectNotFoundError.
        """
        ...

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A writer. The object appears, durable, when the context ends normally, but not when it raises."""
        ...

    def persist(self, paths: Sequence[str]) -> None:
        """Make objects durable that may not be durable yet.

        Such objects are those that others wrote without this store, such as Spark's tasks, and those of a
        `put_if_absent` that raised AmbiguousWriteError: reading such an object shows that it exists, not
        that it survives a loss of power. Call this before a commit refers to the objects, or before the
        object counts as a commit. Where a write is durable as soon as it can be read, as in object stores,
        this only checks that the objects exist.

        Raises:
            ObjectNotFoundError: an object is missing.
            StorageError: an object is not durable.
        """
        ...


def parent_store(store: LogStore) -> LogStore | None:
    """The store of the directory above the root; None for the root of a file system, bucket or container.

    Makes no request. `LogStore` does not require the method `parent`: None also for a store without it.
    """
    parent: Callable[[], LogStore | None] | None = getattr(store, "parent", None)
    return None if parent is None else parent()


def fetch_listed(info: ObjectInfo, fetch: Callable[[], bytes]) -> bytes:
    """An immutable object with the size that a listing recorded. Fetched again while the size differs.

    Raises:
        StorageError: the size differed each time: a part arrived, or the object was replaced.
    """
    found_bytes = 0
    for _ in range(_FETCH_TRIES):
        data = fetch()
        if len(data) == info.size_bytes:
            return data
        found_bytes = len(data)
    raise StorageError(
        f"{info.path!r} does not have the size that was listed.",
        cause=f"{found_bytes} bytes arrived instead of {info.size_bytes}: the response was cut off, "
        "or the object was replaced.",
        fix="Load the table again. If that does not help, compare the file with a backup.",
    )


def read_immutable(store: LogStore, path: str) -> bytes:
    """An immutable object, from a cache if the store has one.

    Do not use it for a commit that decides which writer won; see `LogStore.read`. Raises ObjectNotFoundError.
    """
    if not store.remote:
        return store.read(path)
    with store.open_whole(path) as source:
        return bytes(source.read())


_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def has_control_characters(string: str) -> bool:
    """Whether a string contains a control character or a lone surrogate, which requests cannot contain."""
    return not (string.isascii() and string.isprintable()) and _NOT_IN_NAMES.search(string) is not None


def plain_parts(path: str, *, root_uri: str) -> list[str]:
    """The parts of a path, which must stay below the root.

    Raises:
        PathEscapeError: the path is empty, absolute, or has an empty, `.` or `..` part, or a NUL character.
    """
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise PathEscapeError(
            f"The store path {path!r} is not a plain path below the root {root_uri!r}.",
            cause="The path is empty, absolute, or has an empty, '.' or '..' part.",
            fix="Resolve paths of the log with resolve_data_path.",
        )
    return parts


_Method = TypeVar("_Method", bound=Callable[..., Any])
_MARK = "__in_place_of__"


def in_place_of(*methods: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Mark a method as a replacement for other methods of its class."""

    def mark(method: _Method) -> _Method:
        setattr(method, _MARK, methods)
        return method

    return mark


def stand_in(store: object, name: str) -> Callable[..., Any] | None:
    """A store's method with this name, if the methods that it replaces are unchanged; else None."""
    kind = type(store)
    methods: tuple[Callable[..., Any], ...] = getattr(getattr(kind, name, None), _MARK, ())
    own = getattr(store, "__dict__", {})
    if not methods or name in own:
        return None
    if any(getattr(kind, m.__name__, None) is not m or m.__name__ in own for m in methods):
        return None
    method: Callable[..., Any] = getattr(store, name)
    return method
