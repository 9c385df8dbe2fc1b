"""Names of objects as an Arrow column.

A name of the local file system need not be UTF-8, and then Python has it with lone surrogates, which no
column of strings can hold. So a column of names has their bytes, each surrogate by three of its own: every
name has bytes that no other has, and their order is that of the names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

NAME: Final = pa.large_binary()
"""The type of such a column."""


def name_bytes(name: str) -> bytes:
    """What a column has for a name."""
    return name.encode("utf-8", "surrogatepass")


def name_column(names: Sequence[str]) -> pa.Array:
    """The column of some names."""
    try:
        return pa.array(names, NAME)
    except UnicodeEncodeError:
        return pa.array([name_bytes(name) for name in names], NAME)


def names_in(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """The names in a column."""
    try:
        found: list[str] = column.cast(pa.large_string()).to_pylist()
    except pa.ArrowInvalid:
        found = [name.decode("utf-8", "surrogatepass") for name in column.to_pylist()]
    return found


def is_ascii(column: pa.Array) -> bool:
    """Whether every name in a column without nulls is ASCII."""
    if not len(column):
        return True
    _, ends, data = column.buffers()
    offsets = memoryview(ends).cast("q")
    first, last = offsets[column.offset], offsets[column.offset + len(column)]
    return data is None or bytes(memoryview(data)[first:last]).isascii()
