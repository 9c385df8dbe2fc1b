"""Arrays that hold more than one array of a table's types can: Arrow counts bytes of texts with 31 bits.

What polars or a large frame of pandas has in one array of 64-bit offsets becomes several arrays here, without
a copy of the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CHUNK_BYTES: Final = 2**31 - 1
"""What the texts of one array have at most, with offsets of 32 bits."""


def pieces(array: pa.Array, *, limit_bytes: int | None = None) -> Iterator[pa.Array]:
    """Consecutive parts of an array, each of no more bytes than the limit, or of one row.

    Args:
        array: of any type.
        limit_bytes: what the values of a part may have; CHUNK_BYTES when None.
    """
    limit = CHUNK_BYTES if limit_bytes is None else limit_bytes
    size = value_bytes(array)
    if len(array) < 2 or size <= limit:
        yield array
        return
    half = len(array) // 2
    parts = (array.slice(0, half), array.slice(half))
    if all(value_bytes(part) >= size for part in parts):
        # What a part shares with the rest cannot be told apart.
        yield array
        return
    for part in parts:
        yield from pieces(part, limit_bytes=limit)


def row_slices(table: pa.Table, *, limit_bytes: int | None = None) -> Iterator[tuple[int, int]]:
    """Start and length of consecutive rows whose columns can each be one array."""
    limit = CHUNK_BYTES if limit_bytes is None else limit_bytes
    yield from _slices(table, 0, table.num_rows, table.nbytes, limit)


def _slices(table: pa.Table, start: int, length: int, size: int, limit: int) -> Iterator[tuple[int, int]]:
    half = length // 2
    parts = ((start, half), (start + half, length - half))
    sizes = [table.slice(*part).nbytes for part in parts] if half and size > limit else []
    if not sizes or min(sizes) >= size:
        yield start, length
        return
    for (at, rows), part_size in zip(parts, sizes, strict=True):
        yield from _slices(table, at, rows, part_size, limit)


def narrowed(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Texts or bytes with 64-bit offsets as the same with 32-bit ones; they are not copied.

    Args:
        array: of `large_string` or `large_binary`, with no more than CHUNK_BYTES.
        target: `string` or `binary`.
    """
    validity, offsets, data = array.buffers()
    count = len(array)
    if not count:
        return pa.array([], target)
    ends = np.frombuffer(offsets, np.int64, count=count + 1, offset=8 * array.offset)
    first, last = int(ends[0]), int(ends[-1])
    if last - first > 2**31 - 1:
        raise pa.ArrowInvalid(f"{last - first} bytes are more than one array of {target} can hold")
    if validity is not None:
        validity = pa.py_buffer(
            np.packbits(pc.is_valid(array).to_numpy(zero_copy_only=False), bitorder="little")
        )
    values = pa.py_buffer(b"") if data is None else data.slice(first, last - first)
    return pa.Array.from_buffers(
        target, count, [validity, pa.py_buffer((ends - first).astype(np.int32)), values], array.null_count
    )


def value_bytes(array: pa.Array) -> int:
    """What an array's values take once they are written out, roughly and never too little."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return value_bytes(array.storage)
    if pa.types.is_dictionary(kind):
        return max(int(array.nbytes), len(array) * _longest(array.dictionary))
    if pa.types.is_run_end_encoded(kind):
        return max(int(array.nbytes), len(array) * _longest(array.values))
    if kind in (pa.string_view(), pa.binary_view()):
        return int(_view_lengths(array).sum(dtype=np.int64))
    return int(array.nbytes)


def _longest(values: pa.Array) -> int:
    """How many bytes the longest of some texts has; a number's eight, where there are none."""
    kind = values.type
    if not len(values):
        return 0
    if kind in (pa.string_view(), pa.binary_view()):
        return int(_view_lengths(values).max())
    if kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        return int(pc.max(pc.binary_length(values)).as_py() or 0)
    return 8


def _view_lengths(array: pa.Array) -> np.ndarray:
    """The length of each text, which is the first of the four numbers that stand for it."""
    views = np.frombuffer(array.buffers()[1], np.int32)
    return views.reshape(-1, 4)[array.offset : array.offset + len(array), 0]
