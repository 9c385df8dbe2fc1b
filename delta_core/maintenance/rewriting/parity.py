"""A parity of a file's bytes, taken while the file is written, so that a later look finds what changed in it.

The exclusive or of the file's 64-bit little-endian words. It costs about three hundredths of a compaction, and
finds every change within eight bytes. It finds accidents, not forgeries.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

TAG: Final = "deltaward.parity64"
"""The tag of an `add` action that has the parity, in sixteen hexadecimal digits."""

_MASK = (1 << 64) - 1
_PIECE_BYTES = 8 << 20


class Parity:
    """Of the bytes of a file, given in order, in pieces of any length."""

    def __init__(self) -> None:
        self._parity = 0
        self.size_bytes = 0

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        view = memoryview(data).cast("B")
        # Words are counted from where the piece begins in memory, which is where they are read fast. In the
        # file they begin elsewhere: there each is the same word, rotated.
        whole = len(view) // 8 * 8
        own = int(np.bitwise_xor.reduce(np.frombuffer(view[:whole], dtype="<u8"))) if whole else 0
        own ^= int.from_bytes(view[whole:], "little")
        bits = 8 * (self.size_bytes % 8)
        self._parity ^= (own << bits | own >> (64 - bits)) & _MASK
        self.size_bytes += len(view)

    def hex(self) -> str:
        """The parity of all bytes so far."""
        return f"{self._parity:016x}"


class ParityOutput(io.RawIOBase):
    """Passes on what is written, and keeps its parity."""

    def __init__(self, sink: pa.NativeFile) -> None:
        super().__init__()
        self._sink = sink
        self.parity = Parity()

    def writable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self.parity.size_bytes

    def write(self, data: Any) -> int:
        """Pass the bytes on; how many there were."""
        self.parity.update(data)
        self._sink.write(data)
        return len(data)


def parity_of(source: pa.NativeFile) -> str:
    """The parity of all bytes of an open file."""
    found = Parity()
    while data := source.read(_PIECE_BYTES):
        found.update(data)
    return found.hex()


def recorded_parity(tags: Mapping[str, str | None] | Iterable[tuple[str, str | None]] | None) -> str | None:
    """The parity that an `add` action's tags have, if any."""
    return dict(tags or ()).get(TAG)
