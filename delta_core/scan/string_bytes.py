"""Checks that all strings of a column have the same form, on the bytes of the whole column.

Arrow's kernels return a mask with one answer per string. The proofs of `uniform_statistics` only need to know
whether all strings agree; comparing buffers, or one byte per string, answers this several times faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class StringBytes:
    """The bytes of a string column: string `i` is `data[begins[i]:ends[i]]`."""

    data: npt.NDArray[np.uint8]
    begins: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]

    def begin_with(self, prefix: str) -> bool:
        """Whether all strings begin with `prefix`, which is ASCII."""
        return self.are_at_least(len(prefix)) and all(
            bool((self.data[self.begins + at] == code).all())
            for at, code in enumerate(prefix.encode("ascii"))
        )

    def end_with(self, suffix: str) -> bool:
        """Whether all strings end with `suffix`, which is ASCII."""
        return self.are_at_least(len(suffix)) and all(
            bool((self.data[self.ends - at] == code).all())
            for at, code in enumerate(reversed(suffix.encode("ascii")), start=1)
        )

    def are_at_least(self, length: int) -> bool:
        """Whether all strings have at least this length, in bytes."""
        return bool((self.ends - self.begins >= length).all())

    def have_leading_zeros(self, *, before: int, after: int) -> bool:
        """Whether any number begins with a zero followed by another byte, or with a minus sign and a zero.

        Args:
            before: bytes of each string before its number.
            after: bytes after its number. The number has at least one byte in every string.
        """
        begins, lasts = self.begins + before, self.ends - (after + 1)
        first = self.data[begins]
        if bool((begins[first == ord("0")] < lasts[first == ord("0")]).any()):
            return True
        negative = (first == ord("-")) & (begins < lasts)
        return bool((self.data[begins[negative] + 1] == ord("0")).any())


def bytes_of(column: pa.Array) -> StringBytes:
    """The bytes of a string column that has no nulls and is not a slice of another column."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1).astype(np.intp)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return StringBytes(data=content, begins=bounds[:-1], ends=bounds[1:])


def all_equal(column: pa.Array, string: str) -> bool:
    """Whether every string of the column equals `string`. The column is as for `bytes_of`."""
    offsets, data = _repeated(string, len(column))
    _, column_offsets, column_data = column.buffers()
    if not column_offsets.slice(0, offsets.size).equals(offsets):
        return False
    # The buffer may be longer than the column's last string.
    return data.size == 0 or bool(column_data.slice(0, data.size).equals(data))


@lru_cache(maxsize=64)
def _repeated(string: str, num_strings: int) -> tuple[pa.Buffer, pa.Buffer]:
    whole = string.encode()
    offsets = np.arange(num_strings + 1, dtype=np.int32) * np.int32(len(whole))
    return pa.py_buffer(offsets), pa.py_buffer(whole * num_strings)
