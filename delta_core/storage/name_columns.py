"""Names of objects as an Arrow column.

A name in the local file system need not be UTF-8. Python then represents it with lone surrogates, which a
column of strings cannot hold. A column of names therefore contains bytes, with three bytes for each
surrogate. Different names have different bytes, and the bytes have the order of the names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

NAME: Final = pa.large_binary()
"""The type of a column of names."""


def name_bytes(name: str) -> bytes:
    """The bytes of a name in a column."""
    return name.encode("utf-8", "surrogatepass")


def name_column(names: Sequence[str]) -> pa.Array:
    """A column of names."""
    try:
        encoded = [name.encode() for name in names]
    except UnicodeEncodeError:
        encoded = [name_bytes(name) for name in names]
    ends = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=ends[1:])
    # `pa.array` would import pandas.
    return pa.Array.from_buffers(
        NAME, len(encoded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    )


def names_in(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """The names in a column."""
    try:
        names: list[str] = column.cast(pa.large_string()).to_pylist()
    except pa.ArrowInvalid:
        names = [name.decode("utf-8", "surrogatepass") for name in column.to_pylist()]
    return names


def is_ascii(column: pa.Array) -> bool:
    """Whether every name in a column without nulls is ASCII."""
    if not len(column):
        return True
    _, ends, data = column.buffers()
    offsets = memoryview(ends).cast("q")
    first, last = offsets[column.offset], offsets[column.offset + len(column)]
    return data is None or bytes(memoryview(data)[first:last]).isascii()
