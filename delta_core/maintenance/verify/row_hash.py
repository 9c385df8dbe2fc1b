"""A hash of a multiset of rows: equal for the same rows in any order and in any files. Computed by column.

The hash of a value has 64 bits. The hash of a row mixes the hashes of its values. The hash of the multiset is
the sum of the row hashes modulo 2^64. Sums can be subtracted, so that two versions are compared by only the
files that they do not share. Without a secret seed, the hash detects accidents, not deliberate changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)
_BASE = np.uint64(0x100000001B3)
_MASK = (1 << 64) - 1
_STEP = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowHash:
    """Count and hash of rows, and the hash of each column, which shows the columns that differ."""

    rows: int
    total: int
    columns: tuple[tuple[str, int], ...]

    def minus(self, other: RowHash) -> RowHash:
        """The difference to the hash of other rows; all zero when the rows are the same."""
        subtracted = dict(other.columns)
        return RowHash(
            rows=self.rows - other.rows,
            total=(self.total - other.total) & _MASK,
            columns=tuple((name, (value - subtracted.get(name, 0)) & _MASK) for name, value in self.columns),
        )

    @property
    def is_zero(self) -> bool:
        """True when count and hash are zero."""
        return self.rows == 0 and self.total == 0


def hash_batches(batches: Iterable[pa.RecordBatch], names: Iterable[str]) -> RowHash:
    """The hash of all rows of the batches, over the named columns."""
    ordered = tuple(names)
    rows = total = 0
    sums = dict.fromkeys(ordered, 0)
    for batch in batches:
        columns = [hash_array(batch.column(name)) for name in ordered]
        for name, values in zip(ordered, columns, strict=True):
            sums[name] = (sums[name] + _sum(values)) & _MASK
        combined = _rows(columns, batch.num_rows)
        rows += batch.num_rows
        total = (total + _sum(combined)) & _MASK
    return RowHash(rows=rows, total=total, columns=tuple(sums.items()))


def hash_rows(arrays: Sequence[pa.Array], num_rows: int, *, seed: int = 0) -> Hashes:
    """A 64-bit hash for each row of these columns; hashes of different seeds are independent."""
    return _rows([hash_array(array, seed=seed) for array in arrays], num_rows)


def hash_array(array: pa.Array, *, seed: int = 0) -> Hashes:
    """A 64-bit hash for each value; equal for equal values, also in different arrays of one type."""
    return _hashed(array, np.uint64(seed))


def _rows(columns: Sequence[Hashes], num_rows: int) -> Hashes:
    combined = np.zeros(num_rows, dtype=np.uint64)
    for position, values in enumerate(columns):
        combined = _mix(combined * _BASE + values + np.uint64(position))
    return combined


def _hashed(array: pa.Array, seed: np.uint64) -> Hashes:
    kind = array.type
    null = np.uint64((int(_NULL) + int(seed)) & _MASK)
    if pa.types.is_dictionary(kind):
        return _hashed(array.dictionary_decode(), seed)
    if pa.types.is_null(kind):
        return np.full(len(array), null)
    if pa.types.is_struct(kind):
        hashes = np.zeros(len(array), dtype=np.uint64)
        for child in array.flatten():
            hashes = _mix(hashes * _BASE + _hashed(child, seed))
    elif pa.types.is_map(kind):
        keys, items = _children(array, array.keys), _children(array, array.items)
        pairs = _mix(_hashed(keys, seed) * _BASE + _hashed(items, seed))
        hashes = _segments(pairs, _offsets(array), seed)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        hashes = _segments(_hashed(_children(array, array.values), seed), _offsets(array), seed)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        hashes = _strings(array, seed)
    else:
        hashes = _fixed(array, seed)
    if array.null_count:
        hashes = np.where(pc.is_null(array).to_numpy(zero_copy_only=False), null, hashes)
    return hashes


def _fixed(array: pa.Array, seed: np.uint64) -> Hashes:
    """Hashes of fixed-width values by their bits. All NaN are one value, and both zeros are one value."""
    kind = array.type
    if pa.types.is_boolean(kind):
        bits = array.cast(pa.int8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
        return _mix(bits + seed)
    if pa.types.is_decimal(kind):
        words = kind.bit_width // 64
        width = kind.bit_width // 8
        raw = np.frombuffer(array.buffers()[1], dtype=np.uint8)
        start = array.offset * width
        halves = raw[start : start + len(array) * width].view(np.uint64).reshape(len(array), words)
        hashes = np.zeros(len(array), dtype=np.uint64)
        for word in range(words):
            hashes = _mix(hashes * _BASE + halves[:, word] + seed)
        return hashes
    if pa.types.is_floating(kind):
        numbers = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
        return _mix(numbers.view(np.uint64) + seed)
    if kind.bit_width == 32 and not pa.types.is_integer(kind):
        array = array.cast(pa.int32())
    elif not pa.types.is_integer(kind):
        array = array.cast(pa.int64())
    return _mix(array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64) + seed)


def _strings(array: pa.Array, seed: np.uint64) -> Hashes:
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    data = array.buffers()[2]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(array) else (0, 0)
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)[first:last]
    return _segments(content.astype(np.uint64), offsets.astype(np.int64) - first, seed)


def _offsets(array: Any) -> npt.NDArray[np.int64]:
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets - offsets[0] if len(offsets) else np.zeros(1, np.int64)


def _children(array: Any, values: pa.Array) -> pa.Array:
    """The children of the array's own slice."""
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[len(array)].as_py()
    return values.slice(first, last - first)


def _segments(values: Hashes, offsets: npt.NDArray[np.int64], seed: np.uint64) -> Hashes:
    """For each segment, the sum of its elements, each mixed with its position; from one prefix sum.

    Elements must be mixed before the sum: a polynomial hash modulo 2^64 collides for some pairs of long
    strings, for any base.
    """
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    positions = (np.arange(len(values), dtype=np.int64) - np.repeat(starts, lengths)).astype(np.uint64)
    prefix = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(_mix(values + (positions + np.uint64(1)) * _STEP + seed), out=prefix[1:])
    return _mix(prefix[ends] - prefix[starts] + lengths.astype(np.uint64) * _BASE + seed)


def _mix(values: Hashes) -> Hashes:
    """The finalizer of splitmix64: every input bit affects every output bit."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _sum(values: Hashes) -> int:
    return int(np.sum(values, dtype=np.uint64)) if len(values) else 0
