"""From positions of deleted rows to the bytes of a deletion vector (PROTOCOL.md, "Deletion Vector Format").

Each container takes the smallest of its three forms, as Roaring libraries choose after they have looked
for runs.
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
    """Any integers as positions: ascending and distinct. No copy of 64-bit integers that are so already.

    Raises:
        ConfigurationError: other than integers from 0 to 2^63 - 1, or more than one dimension.
    """
    array: npt.NDArray[Any] = np.asarray(values)
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _no_positions(f"they are {array.ndim}-dimensional and of the type {array.dtype}")
    if (array[1:] <= array[:-1]).any():
        array = np.unique(array)
    least, greatest = int(array[0]), int(array[-1])
    if least < 0 or greatest >= 1 << 63:
        raise _no_positions(f"they reach from {least} to {greatest}")
    return array.astype(np.int64, copy=False)


def serialize_deletion_vector(positions: npt.ArrayLike) -> bytes:
    """The bytes of a vector: the magic number and the bitmap, as a descriptor counts them.

    Raises:
        ConfigurationError: see `row_positions`.
    """
    return MAGIC.to_bytes(4, "little") + encode_portable64(positions)


def encode_portable64(positions: npt.ArrayLike) -> bytes:
    """The values as a 64-bit Roaring bitmap in the portable format; `decode_portable64` undoes it.

    Time and memory are linear in the number of values, and work in Python is for each container that is not
    an array.

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
    """One 32-bit bitmap, of values that have their upper half in common, in pieces."""
    keys = (values >> 16) & 0xFFFF
    low = (values & 0xFFFF).astype("<u2")
    starts, ends = _spans(keys)
    sizes = ends - starts
    begins_run = np.empty(len(values), np.bool_)
    begins_run[0] = True
    np.not_equal(values[1:], values[:-1] + 1, out=begins_run[1:])
    begins_run[starts] = True  # a run that goes on in the next container is two
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

    # Arrays beside each other are one piece: their values follow each other as they are.
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
    """The cookie, the number of containers, and which of them are of runs."""
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
    """Where each of the distinct values of an ascending array begins, and where it ends."""
    bounds = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
    if not len(ascending):
        return bounds, bounds
    return np.append(0, bounds), np.append(bounds, len(ascending))


def _no_positions(cause: str) -> ConfigurationError:
    return ConfigurationError(
        "These are no positions of rows",
        cause=cause,
        fix="Pass one array of integers, each a row's number in its file, from 0",
    )
