"""A seekable reader of an object that is fetched range by range."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

import pyarrow as pa

READ_AHEAD_BYTES = 256 * 1024


class RangedInput(io.RawIOBase):
    """Reads an immutable object by ranges, one of which is kept.

    A read that is not within the kept range fetches what it needs, or `READ_AHEAD_BYTES` if that is more;
    one within that distance of the end fetches the whole end, where Parquet's footer is. Not safe to use
    from several threads by itself; `pyarrow.PythonFile` takes turns.

    Args:
        fetch: the bytes of (offset, length); returns exactly so many or raises.
        size_bytes: the object's size.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], *, size_bytes: int) -> None:
        super().__init__()
        self._fetch = fetch
        self._size_bytes = size_bytes
        self._position = 0
        self._kept_from = 0
        self._kept = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move; no request. The new position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size_bytes}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """So many bytes, fewer only at the end. At most one fetch."""
        left = max(0, self._size_bytes - self._position)
        wanted = left if size < 0 else min(size, left)
        if wanted == 0:
            return b""
        start = self._position - self._kept_from
        if start < 0 or start + wanted > len(self._kept):
            begin = self._position
            if self._size_bytes - begin <= READ_AHEAD_BYTES:
                begin = max(0, self._size_bytes - READ_AHEAD_BYTES)
            end = min(self._size_bytes, max(self._position + wanted, begin + READ_AHEAD_BYTES))
            self._kept = self._fetch(begin, end - begin)
            self._kept_from = begin
            start = self._position - begin
        self._position += wanted
        return self._kept if wanted == len(self._kept) else self._kept[start : start + wanted]

    def readall(self) -> bytes:
        """What is left. At most one fetch."""
        return self.read(-1)


def open_ranged(fetch: Callable[[int, int], bytes], *, size_bytes: int) -> pa.NativeFile:
    """A `RangedInput` as Arrow reads it; it may be read from several threads."""
    return pa.PythonFile(RangedInput(fetch, size_bytes=size_bytes), mode="r")
