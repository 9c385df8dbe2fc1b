"""An index of the source's keys: which source rows have the key of a target row.

Keys are numbered: integers in a narrow range by their distance from the smallest, other values by their place
among the source's distinct values. Several columns form one number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.expressions.arithmetic import common_type, convert

Numbers = npt.NDArray[np.int64]
Array: TypeAlias = "pa.Array | pa.ChunkedArray"

BLOCK_PAIRS: Final = 1 << 20
"""The maximum number of pairs of rows that are compared at once, apart from those of one target row."""

_DENSE: Final = 1 << 22
_MOST_DENSE: Final = 1 << 27
_MOST_OFFSET_BYTES: Final = 1 << 30


class _Numbering(Protocol):
    count: int

    def numbers(self, values: pa.Array | pa.ChunkedArray) -> Numbers:
        """The number of each value; -1 for values that the source does not have."""
        ...


class _Dense:
    """Numbers integers, dates and timestamps by their distance from the smallest."""

    def __init__(self, low: int, high: int) -> None:
        self._low = low
        self.count = high - low + 1

    def numbers(self, values: pa.Array | pa.ChunkedArray) -> Numbers:
        plain, valid = _integers(values)
        found = plain - self._low
        outside = (plain < self._low) | (found < 0) | (found >= self.count)
        if valid is not None:
            outside |= ~valid
        found[outside] = -1
        return found


class _Listed:
    """Numbers values by their place in a list."""

    def __init__(self, distinct: pa.Array, *, null_safe: bool) -> None:
        self._distinct = distinct
        self._null_safe = null_safe
        self.count = len(distinct)

    def numbers(self, values: pa.Array | pa.ChunkedArray) -> Numbers:
        found = pc.index_in(values, value_set=self._distinct, skip_nulls=not self._null_safe)
        filled = pc.fill_null(found, -1)
        plain = filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(False)
        return np.asarray(plain, dtype=np.int64)


class KeyIndex:
    """The source rows by key. Memory: about 16 bytes for each source row, and the distinct keys."""

    def __init__(
        self,
        keys: Sequence[pa.ChunkedArray],
        target_types: Sequence[pa.DataType],
        *,
        null_safe: Sequence[bool],
        candidates: npt.NDArray[np.bool_] | None,
    ) -> None:
        """Build the index.

        Args:
            keys: for each equality the value of every source row.
            target_types: for each equality the type of the target's values.
            null_safe: for each equality whether two nulls are equal.
            candidates: which source rows may match; all when None.
        """
        num_rows = len(keys[0])
        self._types: list[pa.DataType] = []
        self._numberings: list[_Numbering] = []
        combined = np.zeros(num_rows, np.int64)
        outside = np.zeros(num_rows, np.bool_) if candidates is None else ~candidates
        self._steps: list[Numbers | None] = []
        size = 1
        for column, target_type, is_safe in zip(keys, target_types, null_safe, strict=True):
            common = _wide(common_type(target_type, column.type), column.nbytes)
            self._types.append(common)
            values = comparable(column, common)
            numbering = _numbering(values, null_safe=is_safe)
            self._numberings.append(numbering)
            numbers = numbering.numbers(values)
            outside |= numbers < 0
            if size > (1 << 62) // max(numbering.count, 1):
                # The numbers so far are numbered again, so that the product fits 64 bits.
                step, combined = np.unique(combined, return_inverse=True)
                self._steps.append(step)
                size = len(step)
            else:
                self._steps.append(None)
            combined = combined * numbering.count + np.maximum(numbers, 0)
            size *= max(numbering.count, 1)
        rows = np.flatnonzero(~outside)
        combined = combined[rows]
        self._distinct: Numbers | None = None
        if size > max(_DENSE, 4 * num_rows):
            self._distinct, combined = np.unique(combined, return_inverse=True)
            size = len(self._distinct)
        counts = np.bincount(combined, minlength=size)
        self.is_unique = not len(counts) or int(counts.max()) <= 1
        row_type = np.int32 if num_rows < (1 << 31) else np.int64
        self._row_of = np.empty(0, row_type)
        if self.is_unique:
            self._row_of = np.full(size, -1, row_type)
            self._row_of[combined] = rows
        else:
            self._starts = np.concatenate(([0], np.cumsum(counts)))
            self._order = rows[np.argsort(combined, kind="stable")].astype(row_type)

    @property
    def types(self) -> Sequence[pa.DataType]:
        """For each equality, the type in which values are compared."""
        return self._types

    def pairs(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> Iterator[tuple[Numbers, Numbers]]:
        """The pairs of target row and source row with equal keys, in blocks, in the order of target rows.

        Args:
            keys: for each equality the values of a batch of target rows.
        """
        codes = self._codes([comparable(key, kind) for key, kind in zip(keys, self._types, strict=True)])
        rows = np.flatnonzero(codes >= 0)
        codes = codes[rows]
        if self.is_unique:
            found = np.empty(0, np.int64)
            if len(codes):
                found = self._row_of[codes].astype(np.int64)
            is_found = found >= 0
            yield rows[is_found], found[is_found]
            return
        counts = self._starts[codes + 1] - self._starts[codes]
        for first, last in blocks(counts, BLOCK_PAIRS):
            part, number = codes[first:last], counts[first:last]
            ends = np.cumsum(number)
            within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - number, number)
            source = self._order[np.repeat(self._starts[part], number) + within]
            yield np.repeat(rows[first:last], number), source.astype(np.int64)

    def _codes(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> Numbers:
        combined: Numbers | None = None
        outside: npt.NDArray[np.bool_] | None = None
        for values, numbering, step in zip(keys, self._numberings, self._steps, strict=True):
            numbers = numbering.numbers(values)
            if combined is None or outside is None:
                combined, outside = numbers, numbers < 0
                continue
            outside |= numbers < 0
            if step is not None:
                combined, is_known = _places(step, combined)
                outside |= ~is_known
            combined = combined * numbering.count + numbers
        assert combined is not None
        assert outside is not None
        if self._distinct is not None:
            combined, is_known = _places(self._distinct, combined)
            outside |= ~is_known
        combined[outside] = -1
        return combined


def blocks(counts: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges whose sums of counts are at most `most`, or that have one element."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
        yield first, last
        first = last


def comparable(values: pa.Array | pa.ChunkedArray, target: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Values in which equality is equality of bits: one NaN and one zero, as in Spark."""
    values = convert(values, target)
    if not pa.types.is_floating(target):
        return values
    values = pc.add(values, pa.scalar(0, target))  # -0.0 becomes 0.0
    return pc.if_else(pc.fill_null(pc.is_nan(values), False), pa.scalar(float("nan"), target), values)


def _places(distinct: Numbers, values: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    if not len(distinct):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)
    return places, distinct[places] == values


def _numbering(values: pa.Array | pa.ChunkedArray, *, null_safe: bool) -> _Numbering:
    if not null_safe and _is_integral(values.type):
        bounds = pc.min_max(values.cast(_integer_type(values.type)))
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low is not None and high - low < min(max(_DENSE, 4 * len(values)), _MOST_DENSE):
            return _Dense(low, high)
    distinct = pc.unique(values)
    return _Listed(distinct if null_safe else distinct.drop_null(), null_safe=null_safe)


def _wide(data_type: pa.DataType, num_bytes: int) -> pa.DataType:
    """The type with offsets of 64 bits, where the distinct values of a column may need them."""
    if num_bytes > _MOST_OFFSET_BYTES and data_type in (pa.string(), pa.binary()):
        return pa.large_string() if data_type == pa.string() else pa.large_binary()
    return data_type


def _is_integral(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_date32(data_type) or types.is_timestamp(data_type))


def _integer_type(data_type: pa.DataType) -> pa.DataType:
    return (
        data_type
        if pa.types.is_integer(data_type)
        else pa.int32()
        if data_type == pa.date32()
        else pa.int64()
    )


def _integers(
    values: pa.Array | pa.ChunkedArray,
) -> tuple[Numbers, npt.NDArray[np.bool_] | None]:
    """The values as 64-bit integers in new memory, and which of them are valid; None when all are."""
    integers = values.cast(_integer_type(values.type))
    valid = None
    if integers.null_count:
        mask = pc.is_valid(integers)
        valid = mask.to_numpy() if isinstance(mask, pa.ChunkedArray) else mask.to_numpy(False)
        integers = pc.fill_null(integers, 0)
    plain = integers.to_numpy() if isinstance(integers, pa.ChunkedArray) else integers.to_numpy(False)
    return plain.astype(np.int64), valid
