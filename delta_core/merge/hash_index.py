"""An index of many source rows by the hashes of their keys. The keys themselves stay where the source is.

Each row has one number of 64 bits: the highest bits are those of its key's hash, the lowest are the row. The
numbers are sorted. A look-up returns the rows with equal bits of the hash, whose keys are then compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.merge.hashing import Hashes, combined, hashes
from delta_core.merge.key_index import BLOCK_PAIRS, Array, Numbers, blocks, comparable

Rows = npt.NDArray[np.int64]
KeysOfRows = Callable[[Rows], Sequence[Array]]
"""Returns the source's value of each equality for some rows."""

_ONE: Final = np.uint64(1)


class HashIndex:
    """The source rows by the hash of their keys. Memory: 8 bytes for each source row."""

    def __init__(
        self,
        key_blocks: Iterator[Sequence[Array]],
        types: Sequence[pa.DataType],
        *,
        num_rows: int,
        null_safe: Sequence[bool],
        candidates: npt.NDArray[np.bool_] | None,
        keys_of: KeysOfRows,
    ) -> None:
        """Build the index.

        Args:
            key_blocks: the value of each equality for consecutive blocks of all source rows.
            types: for each equality the type in which values are compared; see `hashing.is_hashable`.
            num_rows: the number of source rows.
            null_safe: for each equality whether two nulls are equal.
            candidates: which source rows may match; all when None.
            keys_of: returns the keys of source rows; may be called by several threads.
        """
        self.types, self._null_safe, self._keys_of = tuple(types), tuple(null_safe), keys_of
        self._low = (_ONE << np.uint64(max(1, num_rows.bit_length()))) - _ONE
        numbers: Hashes = np.empty(num_rows, np.uint64)
        count = start = 0
        for block in key_blocks:
            found, outside = self._hashes(block)
            stop = start + len(found)
            if candidates is not None:
                outside = ~candidates[start:stop] if outside is None else outside | ~candidates[start:stop]
            rows = np.arange(start, stop, dtype=np.uint64)
            found = (found & ~self._low) | rows
            if outside is not None:
                found = found[~outside]
            numbers[count : count + len(found)] = found
            count, start = count + len(found), stop
        self._numbers = numbers[:count]
        self._numbers.sort()
        high = self._numbers & ~self._low
        self.is_unique = not bool((high[1:] == high[:-1]).any())
        """Whether no two rows have equal keys. False also for equal hashes."""

    def pairs(self, keys: Sequence[Array]) -> Iterator[tuple[Numbers, Numbers]]:
        """The pairs of target row and source row with equal keys, in blocks, in the order of target rows.

        Args:
            keys: for each equality the values of a batch of target rows.
        """
        values = [comparable(key, kind) for key, kind in zip(keys, self.types, strict=True)]
        found, outside = self._hashes(values)
        rows = np.arange(len(found)) if outside is None else np.flatnonzero(~outside)
        if not len(self._numbers):
            return
        wanted = found[rows] & ~self._low
        first = np.searchsorted(self._numbers, wanted)
        is_found = self._has_at(first, wanted)
        rows, first, wanted = rows[is_found], first[is_found], wanted[is_found]
        counts = np.ones(len(rows), np.int64)
        if not self.is_unique:
            many = self._has_at(first + 1, wanted)
            counts[many] = (
                np.searchsorted(self._numbers, wanted[many] | self._low, side="right") - first[many]
            )
        for start, stop in blocks(counts, BLOCK_PAIRS):
            number = counts[start:stop]
            ends = np.cumsum(number)
            within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - number, number)
            places = np.repeat(first[start:stop], number) + within
            source = (self._numbers[places] & self._low).astype(np.int64)
            target = np.repeat(rows[start:stop], number)
            equal = self._are_equal(values, target, source)
            yield target[equal], source[equal]

    def _has_at(self, places: Numbers, wanted: Hashes) -> npt.NDArray[np.bool_]:
        last = len(self._numbers) - 1
        found = self._numbers[np.minimum(places, last)] & ~self._low
        has: npt.NDArray[np.bool_] = (places <= last) & (found == wanted)
        return has

    def _are_equal(self, values: Sequence[Array], target: Numbers, source: Numbers) -> npt.NDArray[np.bool_]:
        equal = np.ones(len(target), np.bool_)
        if not len(target):
            return equal
        for theirs, kind, value, is_safe in zip(
            self._keys_of(source), self.types, values, self._null_safe, strict=True
        ):
            ours = value.take(pa.array(target))
            equal &= _equal(ours, comparable(theirs, kind), null_safe=is_safe)
        return equal

    def _hashes(self, keys: Sequence[Array]) -> tuple[Hashes, npt.NDArray[np.bool_] | None]:
        """The hashes of rows of keys, and which rows have a null that is equal to nothing."""
        total: Hashes | None = None
        outside: npt.NDArray[np.bool_] | None = None
        for key, kind, is_safe in zip(keys, self.types, self._null_safe, strict=True):
            found, valid = hashes(comparable(key, kind))
            if valid is not None and not is_safe:
                outside = ~valid if outside is None else outside | ~valid
            total = found if total is None else combined(total, found)
        assert total is not None
        return total, outside


def _equal(first: Array, second: Array, *, null_safe: bool) -> npt.NDArray[np.bool_]:
    """Whether values of one type are equal; NaN is equal to NaN."""
    same = pc.equal(first, second)
    if pa.types.is_floating(first.type):
        same = pc.or_kleene(same, pc.and_kleene(pc.is_nan(first), pc.is_nan(second)))
    same = pc.fill_null(same, False)
    if null_safe:
        same = pc.or_(same, pc.and_(pc.is_null(first), pc.is_null(second)))
    array = same.combine_chunks() if isinstance(same, pa.ChunkedArray) else same
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.bool_())
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
