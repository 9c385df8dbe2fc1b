"""A seekable reader of an object that is fetched in ranges."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

import pyarrow as pa

READ_AHEAD_BYTES = 256 * 1024


class RangedInput(io.RawIOBase):
    """Reads an immutable object in ranges and buffers the last range.

    A read outside of the buffered range fetches the requested bytes, or `READ_AHEAD_BYTES` if that is more.
    A read within that distance of the end fetches the whole end, which contains Parquet's footer. Not safe
    for use from several threads; `pyarrow.PythonFile` serialises the calls.

    Args:
        fetch: returns exactly the bytes of (offset, length) or raises.
        size_bytes: the object's size.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], *, size_bytes: int) -> None:
        super().__init__()
        self._fetch = fetch
        self._size_bytes = size_bytes
        self._position = 0
        self._buffer_start = 0
        self._buffer = b""

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position and return it. No request."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size_bytes}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer only at the end of the object. At most one fetch."""
        left = max(0, self._size_bytes - self._position)
        count = left if size < 0 else min(size, left)
        if count == 0:
            return b""
        start = self._position - self._buffer_start
        if start < 0 or start + count > len(self._buffer):
            begin = self._position
            if self._size_bytes - begin <= READ_AHEAD_BYTES:
                begin = max(0, self._size_bytes - READ_AHEAD_BYTES)
            end = min(self._size_bytes, max(self._position + count, begin + READ_AHEAD_BYTES))
            self._buffer = self._fetch(begin, end - begin)
            self._buffer_start = begin
            start = self._position - begin
        self._position += count
        return self._buffer if count == len(self._buffer) else self._buffer[start : start + count]

    def readall(self) -> bytes:
        """Read to the end. At most one fetch."""
        return self.read(-1)


def open_ranged(fetch: Callable[[int, int], bytes], *, size_bytes: int) -> pa.NativeFile:
    """A `RangedInput` as an Arrow file, which may be read from several threads."""
    return pa.PythonFile(RangedInput(fetch, size_bytes=size_bytes), mode="r")
