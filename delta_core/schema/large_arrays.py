"""Splitting of arrays that are too large for a table's types: Arrow's 32-bit offsets limit an array to 2 GiB.

An array with 64-bit offsets, such as polars or a large pandas frame creates, becomes several arrays, without
copying the strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CHUNK_BYTES: Final = 2**31 - 1
"""The maximum size of the strings of one array with 32-bit offsets."""


def pieces(array: pa.Array, *, limit_bytes: int | None = None) -> Iterator[pa.Array]:
    """Split an array into consecutive parts of at most the limit in bytes, or of one row.

    Args:
        array: of any type.
        limit_bytes: maximum size of the values of a part; CHUNK_BYTES when None.
    """
    limit = CHUNK_BYTES if limit_bytes is None else limit_bytes
    size = value_bytes(array)
    if len(array) < 2 or size <= limit:
        yield array
        return
    half = len(array) // 2
    parts = (array.slice(0, half), array.slice(half))
    if all(value_bytes(part) >= size for part in parts):
        # The parts share data, such as a dictionary, so splitting does not make them smaller.
        yield array
        return
    for part in parts:
        yield from pieces(part, limit_bytes=limit)


def row_slices(table: pa.Table, *, limit_bytes: int | None = None) -> Iterator[tuple[int, int]]:
    """Start and length of consecutive ranges of rows in which each column can be one array."""
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
    """Convert 64-bit offsets of strings or binary values to 32-bit offsets; the data is not copied.

    Args:
        array: of `large_string` or `large_binary`, with at most CHUNK_BYTES.
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
    """An upper estimate of the size of an array's values once they are written without encoding."""
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
    """The size of the longest value in bytes; 8 for other types than strings and binary."""
    kind = values.type
    if not len(values):
        return 0
    if kind in (pa.string_view(), pa.binary_view()):
        return int(_view_lengths(values).max())
    if kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        return int(pc.max(pc.binary_length(values)).as_py() or 0)
    return 8


def _view_lengths(array: pa.Array) -> np.ndarray:
    """The length of each string, which is the first of the four numbers of its view."""
    views = np.frombuffer(array.buffers()[1], np.int32)
    return views.reshape(-1, 4)[array.offset : array.offset + len(array), 0]
