"""A streamed object that replaces none.

A store creates an object only from all of its bytes. So an object of a usual size waits in memory and is
created in one request, and of a larger one the name is looked up right before it appears.
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
"""Errors of a write that say that nothing is there, nor will be later."""

_PAUSES_SECONDS = (0.2, 1.0)


@contextmanager
def created(store: LogStore, path: str, *, clock: Clock) -> Iterator[pa.NativeFile]:
    """A writer of an object that appears when the context ends normally, if its name is free then.

    Two writers of a large object may both find the name free; then the second one's stays. Requests: one up
    to IN_MEMORY_BYTES, made again when the store fails; else a look at the name and a streamed write.

    Raises:
        ObjectExistsError: the name is taken, perhaps by an attempt of this call whose answer was lost.
        StorageError: it was not written, by one of NOTHING_WRITTEN; or that cannot be told, by any other.
    """
    with ExitStack() as stack:
        spill = _Spill(lambda: stack.enter_context(store.open_output(path)))
        yield pa.PythonFile(spill, mode="w")
        if spill.streamed is None:
            _create(store, path, spill.kept.getvalue(), clock)
        elif _is_there(store, path):
            raise _taken(path)  # within the context of the streamed output, which then does not appear


@contextmanager
def created_by_us(store: LogStore, path: str, *, clock: Clock) -> Iterator[pa.NativeFile]:
    """As `created`, for a name that nobody else has: if it is taken, an attempt landed that was not heard of.

    Raises:
        StorageError: it was not written, or that cannot be told.
    """
    try:
        with created(store, path, clock=clock) as sink:
            yield sink
    except ObjectExistsError:
        # That it is there does not say that it outlives a loss of power.
        store.persist([path])


class _Spill(io.RawIOBase):
    """Keeps what is written, until it is too much to keep."""

    def __init__(self, open_output: Callable[[], pa.NativeFile]) -> None:
        super().__init__()
        self._open_output = open_output
        self.kept = io.BytesIO()
        self.streamed: pa.NativeFile | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.streamed is None and self.kept.tell() + len(data) > IN_MEMORY_BYTES:
            self.streamed = self._open_output()
            self.streamed.write(self.kept.getvalue())
            self.kept = io.BytesIO()
        (self.kept if self.streamed is None else self.streamed).write(data)
        return len(data)


def _create(store: LogStore, path: str, data: bytes, clock: Clock) -> None:
    unclear: AmbiguousWriteError | None = None
    for pause_seconds in (*_PAUSES_SECONDS, None):
        try:
            store.put_if_absent(path, data)
            return
        except ObjectExistsError:
            # A store that sees two writers at once may say so to both.
            if pause_seconds is None or _is_there(store, path):
                raise
        except (UnsafeStoreError, WriteRefusedError):
            # It creates nothing in this way; commits are then decided elsewhere.
            if _is_there(store, path):
                raise _taken(path) from None
            _put(store, path, data)
            return
        except StorageError as error:
            if isinstance(error, AmbiguousWriteError):
                unclear = error
            if pause_seconds is None or not error.retryable:
                # What became of an earlier attempt is not settled by one that certainly failed.
                raise unclear or error from error
        clock.sleep(pause_seconds)


def _put(store: LogStore, path: str, data: bytes) -> None:
    try:
        store.put(path, data)
    except NOTHING_WRITTEN:
        raise
    except StorageError as error:
        raise AmbiguousWriteError(
            f"Whether {path!r} was written cannot be told.", cause=str(error), fix="Try again later."
        ) from error


def _is_there(store: LogStore, path: str) -> bool:
    try:
        store.head(path)
    except ObjectNotFoundError:
        return False
    return True


def _taken(path: str) -> ObjectExistsError:
    return ObjectExistsError(f"{path!r} exists already.", fix="Read it to see what it holds.")
