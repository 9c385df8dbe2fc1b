"""64-bit Roaring bitmaps in the portable format (PROTOCOL.md, "Deletion Vector Format").

A bitmap comes from whoever could write to the table, so every length in it is checked against the bytes
that are there before it is used, and the number of values is known before any of them is made.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from delta_core.deletion_vectors.format import (
    BITSET_BYTES,
    LARGEST_ARRAY,
    NO_OFFSETS_BELOW,
    NO_RUNS,
    VALUES_PER_CONTAINER,
    WITH_RUNS,
)

Positions = npt.NDArray[np.int64]
"""Row positions in a file, from 0, ascending and distinct."""


class MalformedBitmap(ValueError):  # noqa: N818 - a signal to the caller, who names the file
    """The bytes are no such bitmap; the text says why."""


def decode_portable64(data: bytes, *, cardinality: int) -> Positions:
    """The values of a bitmap, ascending.

    Args:
        data: the whole serialised bitmap.
        cardinality: how many values it must have; guards against bytes that unfold to far more.

    Raises:
        MalformedBitmap: truncated, trailing bytes, values out of order, or another number of values.
    """
    reader = _Reader(data)
    buckets = reader.unsigned(8)
    # A bucket takes at least its key, a cookie and a count.
    if buckets > len(data) // 8:
        raise MalformedBitmap(f"it claims {buckets} buckets in {len(data)} bytes")
    parts: list[Positions] = []
    left, previous = cardinality, -1
    for _ in range(buckets):
        high = reader.unsigned(4)
        if high <= previous:
            raise MalformedBitmap("its buckets are not in order")
        if high >= 1 << 31:
            raise MalformedBitmap("it has a value above 2^63 - 1")
        previous = high
        for part in _decode_32(reader, limit=left):
            left -= len(part)
            parts.append(part + (high << 32))
    if reader.left:
        raise MalformedBitmap(f"{reader.left} bytes follow it")
    if left:
        raise MalformedBitmap(f"it has {cardinality - left} values, and its descriptor says {cardinality}")
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Reader:
    """The bytes, and how far they have been read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise MalformedBitmap(f"it ends {size - self.left} bytes early")
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def array(self, count: int) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self.take(2 * count), dtype="<u2")


def _decode_32(reader: _Reader, *, limit: int) -> list[Positions]:
    """The containers of one 32-bit bitmap, each as its values."""
    cookie = reader.unsigned(4)
    if cookie & 0xFFFF == WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(reader.take((count + 7) // 8), np.uint8), bitorder="little")
        runs = flags[:count].astype(bool)
    elif cookie == NO_RUNS:
        count = reader.unsigned(4)
        if count > VALUES_PER_CONTAINER:
            raise MalformedBitmap(f"it claims {count} containers in a bucket")
        runs = np.zeros(count, dtype=bool)
    else:
        raise MalformedBitmap(f"its cookie is {cookie}")
    header = reader.array(2 * count).reshape(count, 2).astype(np.int64)
    keys, sizes = header[:, 0], header[:, 1] + 1
    if (np.diff(keys) <= 0).any():
        raise MalformedBitmap("its containers are not in order")
    if cookie == NO_RUNS or count >= NO_OFFSETS_BELOW:
        reader.take(4 * count)  # offsets, which the containers' sizes say again
    parts: list[Positions] = []
    for key, size, is_run in zip(keys.tolist(), sizes.tolist(), runs.tolist(), strict=True):
        if size > limit:
            raise MalformedBitmap("it has more values than its descriptor says")
        limit -= size
        values = _run_container(reader, size) if is_run else _plain_container(reader, size)
        parts.append(values + (key << 16))
    return parts


def _plain_container(reader: _Reader, size: int) -> Positions:
    if size <= LARGEST_ARRAY:
        values = reader.array(size).astype(np.int64)
        if (np.diff(values) <= 0).any():
            raise MalformedBitmap("the values of a container are not in order")
        return values
    bits = np.unpackbits(np.frombuffer(reader.take(BITSET_BYTES), np.uint8), bitorder="little")
    values = np.flatnonzero(bits).astype(np.int64)
    if len(values) != size:
        raise MalformedBitmap(f"a container has {len(values)} values, and its header says {size}")
    return values


def _run_container(reader: _Reader, size: int) -> Positions:
    count = reader.unsigned(2)
    runs = reader.array(2 * count).reshape(count, 2).astype(np.int64)
    starts, lengths = runs[:, 0], runs[:, 1] + 1
    ends = starts + lengths
    if (ends > VALUES_PER_CONTAINER).any() or (starts[1:] < ends[:-1]).any():
        raise MalformedBitmap("the runs of a container overlap or leave it")
    if int(lengths.sum()) != size:
        raise MalformedBitmap(f"the runs of a container have {int(lengths.sum())} values, not {size}")
    # Each value is its number in the container plus what its run was moved by.
    before = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return np.arange(size, dtype=np.int64) + np.repeat(starts - before, lengths)
