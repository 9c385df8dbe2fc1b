"""A sum over a file's bytes, taken while the file is written, so that a later look finds what changed in it.

The sum of the file's 64-bit little-endian words, modulo 2^64: it costs about a tenth of a percent of writing
Parquet, and finds every change within one word. It finds accidents, not forgeries.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

TAG: Final = "deltaward.sum64"
"""The tag of an `add` action that has the sum, in sixteen hexadecimal digits."""

_MASK = (1 << 64) - 1
_PIECE_BYTES = 8 << 20


class ByteSum:
    """Adds up the bytes of a file, given in order, in pieces of any length."""

    def __init__(self) -> None:
        self._sum = 0
        self.size_bytes = 0

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        view = memoryview(data).cast("B")
        lead = -self.size_bytes % 8
        self._add(view[:lead])
        whole = view[lead : lead + (max(0, len(view) - lead) // 8) * 8]
        if whole:
            words = np.frombuffer(whole, dtype="<u8")
            self._sum = (self._sum + int(np.add.reduce(words, dtype=np.uint64))) & _MASK
            self.size_bytes += len(whole)
        self._add(view[lead + len(whole) :])

    def hex(self) -> str:
        """The sum of all bytes so far."""
        return f"{self._sum:016x}"

    def _add(self, few: memoryview) -> None:
        if few:
            self._sum = (self._sum + (int.from_bytes(few, "little") << 8 * (self.size_bytes % 8))) & _MASK
            self.size_bytes += len(few)


class SummedOutput(io.RawIOBase):
    """Passes on what is written, and adds it up."""

    def __init__(self, sink: pa.NativeFile) -> None:
        super().__init__()
        self._sink = sink
        self.sum = ByteSum()

    def writable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self.sum.size_bytes

    def write(self, data: Any) -> int:
        """Pass the bytes on; how many there were."""
        self.sum.update(data)
        self._sink.write(data)
        return len(data)


def sum_of(source: pa.NativeFile) -> str:
    """The sum of all bytes of an open file."""
    found = ByteSum()
    while data := source.read(_PIECE_BYTES):
        found.update(data)
    return found.hex()


def recorded_sum(tags: Mapping[str, str | None] | Iterable[tuple[str, str | None]] | None) -> str | None:
    """The sum that an `add` action's tags have, if any."""
    return dict(tags or ()).get(TAG)
