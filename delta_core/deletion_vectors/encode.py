"""Encoding of positions of deleted rows as a deletion vector (PROTOCOL.md, "Deletion Vector Format").

Each container has the smallest of its three forms, as after the run optimization of Roaring libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from delta_core.deletion_vectors.format import (
    BITSET_BYTES,
    LARGEST_ARRAY,
    MAGIC,
    NO_OFFSETS_BELOW,
    NO_RUNS,
    VALUES_PER_CONTAINER,
    WITH_RUNS,
)
from delta_core.deletion_vectors.roaring import Positions
from delta_core.errors import ConfigurationError

_ARRAY, _BITSET, _RUN = 0, 1, 2


def row_positions(values: npt.ArrayLike) -> Positions:
    """Integers as positions: ascending and distinct. Valid positions as 64-bit integers are not copied.

    Raises:
        ConfigurationError: not integers from 0 to 2^63 - 1, or more than one dimension.
    """
    array: npt.NDArray[Any] = np.asarray(values)
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _invalid_positions(f"The array has {array.ndim} dimensions and the type {array.dtype}.")
    if (array[1:] <= array[:-1]).any():
        array = np.unique(array)
    least, greatest = int(array[0]), int(array[-1])
    if least < 0 or greatest >= 1 << 63:
        raise _invalid_positions(f"They range from {least} to {greatest}, but only 0 to 2^63 - 1 are valid.")
    return array.astype(np.int64, copy=False)


def serialize_deletion_vector(positions: npt.ArrayLike) -> bytes:
    """The bytes of a deletion vector: the magic number and the bitmap. `sizeInBytes` is their length.

    Raises:
        ConfigurationError: see `row_positions`.
    """
    return MAGIC.to_bytes(4, "little") + encode_portable64(positions)


def encode_portable64(positions: npt.ArrayLike) -> bytes:
    """The values as a 64-bit Roaring bitmap in the portable format; `decode_portable64` is the inverse.

    Time and memory are linear in the number of values. There is a step in Python for each container that is
    not an array.

    Raises:
        ConfigurationError: see `row_positions`.
    """
    values = row_positions(positions)
    high = values >> 32
    starts, ends = _spans(high)
    parts = [len(starts).to_bytes(8, "little")]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        parts.append(int(high[start]).to_bytes(4, "little"))
        parts += _encode_32(values[start:end])
    return b"".join(parts)


def _encode_32(values: Positions) -> list[bytes]:
    """One 32-bit bitmap in pieces, of values with equal upper halves."""
    keys = (values >> 16) & 0xFFFF
    low = (values & 0xFFFF).astype("<u2")
    starts, ends = _spans(keys)
    sizes = ends - starts
    begins_run = np.empty(len(values), np.bool_)
    begins_run[0] = True
    np.not_equal(values[1:], values[:-1] + 1, out=begins_run[1:])
    begins_run[starts] = True  # a run that continues in the next container counts as two runs
    runs = np.add.reduceat(begins_run, starts, dtype=np.int64)

    plain_bytes = np.where(sizes <= LARGEST_ARRAY, 2 * sizes, BITSET_BYTES)
    run_bytes = 2 + 4 * runs
    kinds = np.where(sizes <= LARGEST_ARRAY, _ARRAY, _BITSET)
    kinds[run_bytes < plain_bytes] = _RUN
    lengths = np.where(kinds == _RUN, run_bytes, plain_bytes)

    header = np.empty((len(starts), 2), "<u2")
    header[:, 0], header[:, 1] = keys[starts], sizes - 1
    parts = [*_head(kinds == _RUN), header.tobytes()]
    if (kinds != _RUN).all() or len(starts) >= NO_OFFSETS_BELOW:
        first = sum(map(len, parts)) + 4 * len(starts)
        offsets = first + np.concatenate(([0], np.cumsum(lengths)[:-1]))
        parts.append(offsets.astype("<u4").tobytes())

    # Adjacent arrays form one piece, since their values are already contiguous.
    pieces = np.flatnonzero((kinds != _ARRAY) | np.append(True, kinds[:-1] != _ARRAY))
    lasts = np.append(pieces[1:], len(kinds)) - 1
    for piece, last in zip(pieces.tolist(), lasts.tolist(), strict=True):
        start, end = int(starts[piece]), int(ends[last])
        if kinds[piece] == _ARRAY:
            parts.append(low[start:end].tobytes())
        elif kinds[piece] == _BITSET:
            parts.append(_bitset(low[start:end]))
        else:
            parts.append(_runs(low[start:end], begins_run[start:end]))
    return parts


def _head(of_runs: npt.NDArray[np.bool_]) -> list[bytes]:
    """The cookie, the number of containers, and the flags of run containers."""
    count = len(of_runs)
    if not of_runs.any():
        return [NO_RUNS.to_bytes(4, "little"), count.to_bytes(4, "little")]
    cookie = WITH_RUNS | (count - 1) << 16
    return [cookie.to_bytes(4, "little"), np.packbits(of_runs, bitorder="little").tobytes()]


def _bitset(low: npt.NDArray[np.uint16]) -> bytes:
    bits = np.zeros(VALUES_PER_CONTAINER, np.bool_)
    bits[low] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _runs(low: npt.NDArray[np.uint16], begins: npt.NDArray[np.bool_]) -> bytes:
    firsts = np.flatnonzero(begins)
    lengths = np.diff(firsts, append=len(low))
    runs = np.empty((len(firsts), 2), "<u2")
    runs[:, 0], runs[:, 1] = low[firsts], lengths - 1
    return len(firsts).to_bytes(2, "little") + runs.tobytes()


def _spans(ascending: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The start and end positions of each distinct value in an ascending array."""
    bounds = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
    if not len(ascending):
        return bounds, bounds
    return np.append(0, bounds), np.append(bounds, len(ascending))


def _invalid_positions(cause: str) -> ConfigurationError:
    return ConfigurationError(
        "The row positions are invalid.",
        cause=cause,
        fix="Pass a one-dimensional array of integers: the positions of rows in their file, from 0.",
    )
