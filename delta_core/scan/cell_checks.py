"""Whether all texts of a column look alike, asked of the column's bytes at once.

Arrow's kernels answer for each text by itself and hand over a mask; the proofs of `uniform_statistics` only
ask whether all agree, which a comparison of buffers or of one byte per text answers several times faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBytes:
    """The bytes of a column of texts: text `i` is `data[begins[i]:ends[i]]`."""

    data: npt.NDArray[np.uint8]
    begins: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]

    def begin_with(self, text: str) -> bool:
        """Whether all do. `text` is ASCII."""
        return self.are_at_least(len(text)) and all(
            bool((self.data[self.begins + at] == code).all()) for at, code in enumerate(text.encode("ascii"))
        )

    def end_with(self, text: str) -> bool:
        """Whether all do. `text` is ASCII."""
        return self.are_at_least(len(text)) and all(
            bool((self.data[self.ends - at] == code).all())
            for at, code in enumerate(reversed(text.encode("ascii")), start=1)
        )

    def are_at_least(self, length: int) -> bool:
        """Whether none is shorter, in bytes."""
        return bool((self.ends - self.begins >= length).all())

    def have_leading_zeros(self, *, before: int, behind: int) -> bool:
        """Whether any number begins with a zero that something follows, or with a minus sign and a zero.

        Args:
            before: bytes of each text in front of its number.
            behind: bytes behind it. The number has at least one byte in every text.
        """
        begins, lasts = self.begins + before, self.ends - (behind + 1)
        first = self.data[begins]
        if bool((begins[first == ord("0")] < lasts[first == ord("0")]).any()):
            return True
        negative = (first == ord("-")) & (begins < lasts)
        return bool((self.data[begins[negative] + 1] == ord("0")).any())


def bytes_of(column: pa.Array) -> TextBytes:
    """Of a column of strings without nulls that is not a slice of another."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1).astype(np.intp)
    found = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return TextBytes(data=found, begins=bounds[:-1], ends=bounds[1:])


def all_equal(column: pa.Array, text: str) -> bool:
    """Whether every text of the column, one as `bytes_of` takes it, is this one."""
    offsets, data = _repeated(text, len(column))
    _, found_offsets, found = column.buffers()
    if not found_offsets.slice(0, offsets.size).equals(offsets):
        return False
    # What lies behind the last text is no part of the column.
    return data.size == 0 or bool(found.slice(0, data.size).equals(data))


@lru_cache(maxsize=64)
def _repeated(text: str, num_strings: int) -> tuple[pa.Buffer, pa.Buffer]:
    whole = text.encode()
    offsets = np.arange(num_strings + 1, dtype=np.int32) * np.int32(len(whole))
    return pa.py_buffer(offsets), pa.py_buffer(whole * num_strings)
