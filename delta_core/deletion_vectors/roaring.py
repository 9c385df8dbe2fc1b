"""Decoding of 64-bit Roaring bitmaps in the portable format (PROTOCOL.md, "Deletion Vector Format").

Any writer of the table may have produced a bitmap. So every length in it is checked against the available
bytes before it is used, and the number of values is checked before values are created.
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
"""Row positions in a data file: from 0, ascending and distinct."""


class MalformedBitmap(ValueError):  # noqa: N818 - a signal to the caller, who names the file
    """The bytes are not a valid bitmap. The message is a sentence with the reason."""


def decode_portable64(data: bytes, *, cardinality: int) -> Positions:
    """The values of a bitmap, ascending.

    Args:
        data: the complete serialised bitmap.
        cardinality: the required number of values. It bounds the memory, since a few bytes may decode to many
            values.

    Raises:
        MalformedBitmap: the bitmap is truncated, has trailing bytes or values out of order, or its number of
            values is not `cardinality`.
    """
    reader = _Reader(data)
    buckets = reader.unsigned(8)
    # A bucket takes at least its key, a cookie and a count.
    if buckets > len(data) // 8:
        raise MalformedBitmap(f"The bitmap claims {buckets} buckets, more than {len(data)} bytes can hold.")
    parts: list[Positions] = []
    remaining, previous = cardinality, -1
    for _ in range(buckets):
        high = reader.unsigned(4)
        if high <= previous:
            raise MalformedBitmap("The buckets of the bitmap are not in order.")
        if high >= 1 << 31:
            raise MalformedBitmap("The bitmap has a value above 2^63 - 1.")
        previous = high
        for part in _decode_32(reader, limit=remaining):
            remaining -= len(part)
            parts.append(part + (high << 32))
    if reader.remaining:
        raise MalformedBitmap(f"The bitmap is followed by {reader.remaining} unexpected bytes.")
    if remaining:
        raise MalformedBitmap(
            f"The bitmap has {cardinality - remaining} values, its descriptor states {cardinality}."
        )
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Reader:
    """A reader of bytes with its position."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._position

    def take(self, size: int) -> bytes:
        if size > self.remaining:
            raise MalformedBitmap(f"The bitmap ends {size - self.remaining} bytes early.")
        content = self._data[self._position : self._position + size]
        self._position += size
        return content

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def array(self, count: int) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self.take(2 * count), dtype="<u2")


def _decode_32(reader: _Reader, *, limit: int) -> list[Positions]:
    """The values of each container of one 32-bit bitmap."""
    cookie = reader.unsigned(4)
    if cookie & 0xFFFF == WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(reader.take((count + 7) // 8), np.uint8), bitorder="little")
        runs = flags[:count].astype(bool)
    elif cookie == NO_RUNS:
        count = reader.unsigned(4)
        if count > VALUES_PER_CONTAINER:
            raise MalformedBitmap(f"The bitmap claims {count} containers in one bucket, above the limit.")
        runs = np.zeros(count, dtype=bool)
    else:
        raise MalformedBitmap(f"The bitmap has the unknown cookie {cookie}.")
    header = reader.array(2 * count).reshape(count, 2).astype(np.int64)
    keys, sizes = header[:, 0], header[:, 1] + 1
    if (np.diff(keys) <= 0).any():
        raise MalformedBitmap("The containers of the bitmap are not in order.")
    if cookie == NO_RUNS or count >= NO_OFFSETS_BELOW:
        reader.take(4 * count)  # the offsets, which follow from the sizes of the containers
    parts: list[Positions] = []
    for key, size, is_run in zip(keys.tolist(), sizes.tolist(), runs.tolist(), strict=True):
        if size > limit:
            raise MalformedBitmap("The bitmap has more values than its descriptor states.")
        limit -= size
        values = _run_container(reader, size) if is_run else _plain_container(reader, size)
        parts.append(values + (key << 16))
    return parts


def _plain_container(reader: _Reader, size: int) -> Positions:
    if size <= LARGEST_ARRAY:
        values = reader.array(size).astype(np.int64)
        if (np.diff(values) <= 0).any():
            raise MalformedBitmap("The values of a container are not in order.")
        return values
    bits = np.unpackbits(np.frombuffer(reader.take(BITSET_BYTES), np.uint8), bitorder="little")
    values = np.flatnonzero(bits).astype(np.int64)
    if len(values) != size:
        raise MalformedBitmap(f"A container has {len(values)} values, its header states {size}.")
    return values


def _run_container(reader: _Reader, size: int) -> Positions:
    count = reader.unsigned(2)
    runs = reader.array(2 * count).reshape(count, 2).astype(np.int64)
    starts, lengths = runs[:, 0], runs[:, 1] + 1
    ends = starts + lengths
    if (ends > VALUES_PER_CONTAINER).any() or (starts[1:] < ends[:-1]).any():
        raise MalformedBitmap("The runs of a container overlap or exceed it.")
    if int(lengths.sum()) != size:
        raise MalformedBitmap(
            f"The runs of a container have {int(lengths.sum())} values, its header states {size}."
        )
    # Each value is its index in the container plus the shift of its run.
    before = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return np.arange(size, dtype=np.int64) + np.repeat(starts - before, lengths)
