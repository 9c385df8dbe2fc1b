"""Hashes of 64 bits of whole columns. Equal values have equal hashes; different values may have, too."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xFF51AFD7ED558CCD)
_SECOND: Final = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT: Final = np.uint64(33)
_WORD: Final = 8
_MOST_WORDS: Final = 64
"""Of a longer string only the length and the first 512 bytes count."""

# The bytes of the last word that belong to the string, by their number, in the order of a little-endian word.
_PART: Final = np.array([(1 << (8 * count)) - 1 for count in range(_WORD)] + [(1 << 64) - 1], np.uint64)


def is_hashable(data_type: pa.DataType) -> bool:
    """Whether `hashes` takes values of the type."""
    types = pa.types
    return bool(
        _is_word(data_type)
        or types.is_decimal128(data_type)
        or _is_bytes(data_type)
        or types.is_boolean(data_type)
    )


def hashes(values: pa.Array | pa.ChunkedArray) -> tuple[Hashes, Mask | None]:
    """The hash of each value, and which values are valid; None when all are. A null has the hash 0.

    Floating-point values that count as equal must have the same bits; see `key_index.comparable`.
    """
    if isinstance(values, pa.ChunkedArray):
        parts = [_of_array(chunk) for chunk in values.chunks] or [_of_array(pa.array([], values.type))]
        found = np.concatenate(parts)
    else:
        found = _of_array(values)
    if not values.null_count:
        return found, None
    valid = values.is_valid()
    mask = valid.to_numpy() if isinstance(valid, pa.ChunkedArray) else valid.to_numpy(zero_copy_only=False)
    found[~mask] = 0
    return found, mask


def combined(first: Hashes, second: Hashes) -> Hashes:
    """The hashes of pairs of values."""
    return _mixed(first * _FACTOR + second)


def _is_word(data_type: pa.DataType) -> bool:
    """Whether a value is a number of at most 64 bits."""
    types = pa.types
    return bool(
        types.is_integer(data_type)
        or types.is_floating(data_type)
        or types.is_date(data_type)
        or types.is_timestamp(data_type)
    )


def _is_bytes(data_type: pa.DataType) -> bool:
    return data_type in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _of_array(values: pa.Array) -> Hashes:
    data_type = values.type
    if not len(values):
        return np.empty(0, np.uint64)
    if _is_bytes(data_type):
        return _of_bytes(values)
    if pa.types.is_boolean(data_type):
        return _of_array(values.cast(pa.int8()))
    buffer = values.buffers()[1]
    if pa.types.is_decimal128(data_type):
        words = np.frombuffer(buffer, np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
        pairs = words.reshape(-1, 2)
        return combined(_mixed(pairs[:, 0].copy()), pairs[:, 1])
    width = data_type.bit_width // 8
    plain = np.frombuffer(buffer, f"i{width}")[values.offset : values.offset + len(values)]
    return _mixed(plain.astype(np.int64).view(np.uint64))


def _of_bytes(values: pa.Array) -> Hashes:
    _, offsets_buffer, data_buffer = values.buffers()
    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    all_offsets = np.frombuffer(offsets_buffer, np.int64 if is_large else np.int32)
    offsets = all_offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    # Words are read at any byte, also beyond the last string.
    data = np.zeros(last - first + _WORD, np.uint8)
    if last > first:
        data[: last - first] = np.frombuffer(data_buffer, np.uint8, last - first, first)
    words: Hashes = np.ndarray((last - first + 1,), np.uint64, data, strides=(1,))
    lengths = np.diff(offsets)
    places = offsets[:-1] - first
    found: Hashes = lengths.astype(np.uint64) * _FACTOR
    left = np.minimum(lengths, _MOST_WORDS * _WORD)
    rows: npt.NDArray[np.int64] | None = None
    while True:
        is_left = left > 0
        if not is_left.all():
            chosen = np.flatnonzero(is_left)
            rows = chosen if rows is None else rows[chosen]
            places, left = places[chosen], left[chosen]
        if not len(left):
            return _mixed(found)
        word = words[places] & _PART[np.minimum(left, _WORD)]
        if rows is None:
            found = _mixed(found ^ word)
        else:
            found[rows] = _mixed(found[rows] ^ word)
        places, left = places + _WORD, left - _WORD


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of MurmurHash3, which is a bijection; changes the array in place."""
    values ^= values >> _SHIFT
    values *= _FIRST
    values ^= values >> _SHIFT
    values *= _SECOND
    values ^= values >> _SHIFT
    return values
