"""Streamed writes that create an object and never replace one.

A store needs all bytes of an object to create it only if the name is free. So an object of up to
IN_MEMORY_BYTES is buffered in memory and created in one request. For a larger object the name is checked
right before the object appears.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa

from delta_core.clock import Clock
from delta_core.errors import (
    AmbiguousWriteError,
    NameBlockedError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.storage.log_store import LogStore

IN_MEMORY_BYTES = 32 << 20
"""Larger objects are streamed to the store."""

NOTHING_WRITTEN = (NotWrittenError, StorePermissionError, WriteRefusedError, NameBlockedError)
"""Errors which guarantee that a write created no object and will not create one later."""

_PAUSES_SECONDS = (0.2, 1.0)


@contextmanager
def created(store: LogStore, path: str, *, clock: Clock) -> Iterator[pa.NativeFile]:
    """A sink for an object that appears when the context ends normally, if its name is free then.

    Two writers of a large object may both find the name free; then the object of the second writer remains.
    Requests: one for an object of up to IN_MEMORY_BYTES, repeated when the store fails. For a larger object,
    one `head` of the name and a streamed write.

    Raises:
        ObjectExistsError: the name is taken, perhaps by an attempt of this call whose response was lost.
        StorageError: one of NOTHING_WRITTEN: the object was not written. Any other: it may have been written.
    """
    with ExitStack() as stack:
        spill = _Spill(lambda: stack.enter_context(store.open_output(path)))
        yield pa.PythonFile(spill, mode="w")
        if spill.streamed is None:
            _create(store, path, spill.buffer.getvalue(), clock)
        elif _is_there(store, path):
            raise _taken(path)  # raised within the context of the streamed output, which discards the output


@contextmanager
def created_with_unique_name(store: LogStore, path: str, *, clock: Clock) -> Iterator[pa.NativeFile]:
    """Like `created`, for a name that no other writer uses, such as one with a UUID.

    If the object exists, an attempt of this call wrote it and its response was lost: that is a success.

    Raises:
        StorageError: the object was not written, or may have been written.
    """
    try:
        with created(store, path, clock=clock) as sink:
            yield sink
    except ObjectExistsError:
        # The object exists, but may not be durable yet.
        store.persist([path])


class _Spill(io.RawIOBase):
    """A sink that buffers up to IN_MEMORY_BYTES in memory, and streams to the store from then on."""

    def __init__(self, open_output: Callable[[], pa.NativeFile]) -> None:
        super().__init__()
        self._open_output = open_output
        self.buffer = io.BytesIO()
        self.streamed: pa.NativeFile | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.streamed is None and self.buffer.tell() + len(data) > IN_MEMORY_BYTES:
            self.streamed = self._open_output()
            self.streamed.write(self.buffer.getvalue())
            self.buffer = io.BytesIO()
        (self.buffer if self.streamed is None else self.streamed).write(data)
        return len(data)


def _create(store: LogStore, path: str, data: bytes, clock: Clock) -> None:
    unclear: AmbiguousWriteError | None = None
    for pause_seconds in (*_PAUSES_SECONDS, None):
        try:
            store.put_if_absent(path, data)
            return
        except ObjectExistsError:
            # With two concurrent writers, a store may return this error to both.
            if pause_seconds is None or _is_there(store, path):
                raise
        except (UnsafeStoreError, WriteRefusedError):
            # The store has no conditional create; its commits are arbitrated by other means.
            if _is_there(store, path):
                raise _taken(path) from None
            _put(store, path, data)
            return
        except StorageError as error:
            if isinstance(error, AmbiguousWriteError):
                unclear = error
            if pause_seconds is None or not error.retryable:
                # A later attempt that certainly failed does not settle the outcome of an unclear one.
                raise unclear or error from error
        clock.sleep(pause_seconds)


def _put(store: LogStore, path: str, data: bytes) -> None:
    try:
        store.put(path, data)
    except NOTHING_WRITTEN:
        raise
    except StorageError as error:
        raise AmbiguousWriteError(
            f"It is not known whether {path!r} was written.",
            cause=str(error),
            fix="Read the object. If it does not exist, write it again.",
        ) from error


def _is_there(store: LogStore, path: str) -> bool:
    try:
        store.head(path)
    except ObjectNotFoundError:
        return False
    return True


def _taken(path: str) -> ObjectExistsError:
    return ObjectExistsError(f"The object {path!r} exists already.", fix="Read it to check its contents.")
