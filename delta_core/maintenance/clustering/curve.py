"""A space-filling curve over several columns: range ids by quantiles, with interleaved bits.

Each column's values are cut into ranges with about equal numbers of rows. The id of a value is the number of
quantiles that are not above the value. A frequent value therefore covers ids in proportion to its rows, and
the first bit halves the rows for any distribution. Nulls come first and count as rows. NaN comes last, in a
range of its own. The Z-curve interleaves the bits of the ids from the highest down, the first column first.
The Hilbert curve first reflects and rotates the ids cell by cell, so that the curve has no jumps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.maintenance.clustering.hilbert import hilbert_axes
from delta_core.maintenance.clustering.values import (
    NAN_IMAGE,
    PREFIX_BYTES,
    Path,
    SortValues,
    Values,
    column_at,
    sort_values,
)

KEY_BITS: Final = 40
"""Bits of a key. The remaining bits of 64 hold the row number during the sort."""

MAX_COLUMN_BITS: Final = 12
"""Most bits of one column's ids. 4,096 ranges are finer than the files that a group is written to."""

MIN_COLUMN_BITS: Final = 4
"""Fewest bits of one column's ids. With fewer bits a column hardly affects the order."""

MAX_COLUMNS: Final = KEY_BITS // MIN_COLUMN_BITS
"""The largest number of clustering columns."""

_TABLE_SPAN = 1 << 20

Keys = npt.NDArray[np.uint64]
Shape = Literal["zorder", "hilbert"]


def column_bits(columns: int) -> int:
    """Bits of each column's range ids."""
    return min(MAX_COLUMN_BITS, KEY_BITS // columns)


@dataclass(frozen=True, kw_only=True)
class ColumnRanges:
    """The ranges that the values of one column are cut into.

    Attributes:
        path: the column's path, as physical names.
        boundaries: ascending, distinct; a range begins at each boundary.
        ids: the id below the first boundary, then the id from each boundary on.
        null_id: the id of nulls; smaller than all of `ids`.
    """

    path: Path
    boundaries: Values = field(hash=False, compare=False)
    ids: npt.NDArray[np.int64] = field(hash=False, compare=False)
    null_id: int

    @property
    def width(self) -> int:
        """Number of leading bytes of a value that are compared; 0 for numbers."""
        return 0 if self.boundaries.dtype == np.int64 else self.boundaries.dtype.itemsize

    def to_json(self) -> dict[str, Any]:
        """The ranges as a JSON object; bytes as hexadecimal strings."""
        numbers = self.boundaries.dtype == np.int64
        return {
            "path": list(self.path),
            "kind": "integer" if numbers else "bytes",
            "boundaries": [value if numbers else value.hex() for value in self.boundaries.tolist()],
            "ids": self.ids.tolist(),
            "null_id": self.null_id,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The ranges that `to_json` wrote."""
        if document["kind"] == "integer":
            boundaries = np.array(document["boundaries"], np.int64)
        else:
            values = [bytes.fromhex(value) for value in document["boundaries"]]
            boundaries = np.array(values, f"S{max((len(value) for value in values), default=1) or 1}")
        return cls(
            path=tuple(document["path"]),
            boundaries=boundaries,
            ids=np.array(document["ids"], np.int64),
            null_id=document["null_id"],
        )


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A curve: maps a row's values to the row's key.

    Attributes:
        bits: number of bits of each column's ids.
        columns: in the order of interleaving.
        shape: Z-order or Hilbert curve.
    """

    bits: int
    columns: tuple[ColumnRanges, ...]
    shape: Shape = "zorder"

    def keys(self, rows: pa.Table | pa.RecordBatch) -> Keys:
        """The key of each row; the columns are read at their paths."""
        return self.keys_of(
            [
                sort_values(column_at(rows, item.path), width=item.width or PREFIX_BYTES)
                for item in self.columns
            ]
        )

    def keys_of(self, columns: Sequence[SortValues]) -> Keys:
        """The key of each row, from the columns in the curve's order."""
        key: Keys = np.zeros(len(columns[0].values), np.uint64)
        codes = [coder.codes(column) for coder, column in zip(self._coders, columns, strict=True)]
        if self.shape == "hilbert":
            axes = hilbert_axes(codes, self.bits)
            codes = [spread[axis] for spread, axis in zip(self._spreads, axes, strict=True)]
        for code in codes:
            key |= code
        return key

    def to_json(self) -> dict[str, Any]:
        """The curve as a JSON object."""
        columns = [item.to_json() for item in self.columns]
        return {"bits": self.bits, "columns": columns, "shape": self.shape}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The curve that `to_json` wrote."""
        return cls(
            bits=document["bits"],
            columns=tuple(ColumnRanges.from_json(item) for item in document["columns"]),
            shape=document["shape"],
        )

    @cached_property
    def _spreads(self) -> tuple[Keys, ...]:
        count = len(self.columns)
        return tuple(_spread_bits(self.bits, index, count) for index in range(count))

    @cached_property
    def _coders(self) -> tuple[_Coder, ...]:
        ids = np.arange(1 << self.bits, dtype=np.uint64)
        codes = self._spreads if self.shape == "zorder" else (ids,) * len(self.columns)
        return tuple(_Coder(item, code) for item, code in zip(self.columns, codes, strict=True))


def fit_curve(
    paths: Sequence[Sequence[str]],
    columns: Sequence[SortValues],
    *,
    floating: Sequence[bool],
    shape: Shape = "zorder",
) -> Curve:
    """The curve whose ranges follow the quantiles of these rows, usually a sample.

    Args:
        paths: paths of the columns, at most `MAX_COLUMNS`.
        columns: the values of each column, all of the same rows.
        floating: for each column whether it is floating-point, so that NaN needs a range of its own.
        shape: Z-order or Hilbert curve.
    """
    bits = column_bits(len(paths))
    return Curve(
        bits=bits,
        columns=tuple(
            _ranges(tuple(path), column, (1 << bits) - 2, has_nan=nan)
            for path, column, nan in zip(paths, columns, floating, strict=True)
        ),
        shape=shape,
    )


def sorted_rows(keys: Keys) -> npt.NDArray[np.uint64]:
    """Row numbers in key order; rows with the same key keep their order."""
    number_bits = max(1, int(len(keys) - 1).bit_length())
    if KEY_BITS + number_bits > 64:
        return np.argsort(keys, kind="stable").astype(np.uint64)
    # Sorting values is several times faster than sorting positions.
    packed = keys << np.uint64(number_bits)
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    packed &= np.uint64((1 << number_bits) - 1)
    return packed


def _ranges(path: Path, column: SortValues, quantiles: int, *, has_nan: bool) -> ColumnRanges:
    values = column.values if column.nulls is None else column.values[~column.nulls]
    total, nulls = len(column.values), len(column.values) - len(values)
    count = quantiles - 1 if has_nan else quantiles
    positions = np.arange(1, count + 1) * total // (count + 1) if total else np.zeros(0, np.int64)
    null_id = int(np.count_nonzero(positions < nulls))
    bounds = np.sort(values)[positions[null_id:] - nulls]
    if bounds.dtype != np.int64:
        # A value that differs from a boundary only in trailing zero bytes compares as equal to it.
        longest = max((len(value) for value in bounds.tolist()), default=1)
        bounds = bounds.astype(f"S{longest or 1}")
    distinct, counts = np.unique(bounds, return_counts=True)
    ids = 1 + null_id + np.concatenate([[0], np.cumsum(counts)])
    if has_nan:
        last = int(np.searchsorted(distinct, NAN_IMAGE))
        distinct = np.append(distinct[:last], np.int64(NAN_IMAGE))
        ids = np.append(ids[: last + 1], quantiles + 1)
    return ColumnRanges(path=path, boundaries=distinct, ids=ids.astype(np.int64), null_id=null_id)


def _spread_bits(bits: int, index: int, columns: int) -> Keys:
    """For each id, its bits at their positions in a key."""
    ids = np.arange(1 << bits, dtype=np.uint64)
    out: Keys = np.zeros(1 << bits, np.uint64)
    for bit in range(bits):
        position = bit * columns + (columns - 1 - index)
        out |= ((ids >> np.uint64(bit)) & np.uint64(1)) << np.uint64(position)
    return out


class _Coder:
    """Maps one column's values to codes, by the ids of their ranges."""

    def __init__(self, ranges: ColumnRanges, code_of_id: Keys) -> None:
        self._boundaries = ranges.boundaries
        self._codes = code_of_id[ranges.ids]
        self._null_code = code_of_id[ranges.null_id]
        self._table: Keys | None = None
        if ranges.boundaries.dtype == np.int64 and len(ranges.boundaries):
            self._low, self._high = int(ranges.boundaries[0]) - 1, int(ranges.boundaries[-1])
            if self._low >= -(2**63) and self._high - self._low <= _TABLE_SPAN:
                # A table look-up is several times faster than a binary search.
                span = np.arange(self._low, self._high + 1, dtype=np.int64)
                self._table = self._codes[np.searchsorted(ranges.boundaries, span, side="right")]

    def codes(self, column: SortValues) -> Keys:
        if self._table is not None:
            offsets = np.clip(column.values, self._low, self._high)
            offsets -= np.int64(self._low)
            codes: Keys = self._table[offsets]
        else:
            codes = self._codes[np.searchsorted(self._boundaries, column.values, side="right")]
        if column.nulls is not None:
            codes[column.nulls] = self._null_code
        return codes
