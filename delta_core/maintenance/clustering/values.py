"""Columns as numpy arrays that sort like the column: integers, or bytes of a fixed width.

Nulls are a separate mask. All NaN are one value, above every number; minus zero equals zero. Strings and
binary values compare by their first 32 bytes. Minimum and maximum in statistics are cut to 32 characters, so
a finer order would not skip more files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

PREFIX_BYTES: Final = 32
"""Number of leading bytes of a string or binary value that are compared."""

NAN_IMAGE: Final = 0x7FF8_0000_0000_0000
"""The integer image of NaN of both floating-point types: above the image of infinity."""

_WIDE_DECIMAL_BYTES = 16
_SIGN_BIT = 0x80

Path = tuple[str, ...]
Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class SortValues:
    """One column of some rows.

    Attributes:
        values: `int64`, or `S<width>`; a value at the position of a null has no meaning.
        nulls: True where the column is null; None when the column has no null.
    """

    values: Values
    nulls: Mask | None

    def take(self, rows: npt.NDArray[Any] | slice) -> SortValues:
        """The values of some rows."""
        return SortValues(values=self.values[rows], nulls=None if self.nulls is None else self.nulls[rows])

    @classmethod
    def concat(cls, parts: Sequence[SortValues]) -> SortValues:
        """Concatenate the values of the parts."""
        if all(part.nulls is None for part in parts):
            nulls = None
        else:
            nulls = np.concatenate(
                [np.zeros(len(p.values), np.bool_) if p.nulls is None else p.nulls for p in parts]
            )
        return cls(values=np.concatenate([part.values for part in parts]), nulls=nulls)


def column_at(rows: pa.Table | pa.RecordBatch, path: Sequence[str]) -> pa.ChunkedArray | pa.Array:
    """A column by its path; null where an enclosing struct is null."""
    column = rows.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    return column


def sort_values(column: pa.ChunkedArray | pa.Array, *, width: int = PREFIX_BYTES) -> SortValues:
    """A column of any type that has an order, as `SortValues`.

    Args:
        column: integers, floating-point numbers, decimals, booleans, dates, timestamps, strings, binary,
            or dictionaries of these.
        width: number of leading bytes of a string or binary value to compare; at least 1.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        parts = [sort_values(chunk, width=width) for chunk in array.chunks]
        return SortValues.concat(parts)
    if pa.types.is_dictionary(array.type):
        return _of_dictionary(array, width)
    nulls = None if array.null_count == 0 else np.asarray(pc.is_null(array))
    return SortValues(values=_plain(array, width), nulls=nulls)


def _of_dictionary(array: pa.DictionaryArray, width: int) -> SortValues:
    distinct = _plain(array.dictionary, width)
    nulls = None if array.null_count == 0 else np.asarray(pc.is_null(array))
    codes = np.asarray(array.indices.fill_null(0))
    if not len(distinct):
        return SortValues(values=np.zeros(len(array), distinct.dtype), nulls=nulls)
    return SortValues(values=distinct[codes], nulls=nulls)


def _plain(array: pa.Array, width: int) -> Values:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _prefixes(array, width)
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_floating(kind):
        return _float_images(np.asarray(array.fill_null(0.0)))
    if pa.types.is_boolean(kind):
        return np.asarray(array.fill_null(False)).astype(np.int64)
    if pa.types.is_date(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        array = array.cast(pa.int64())
    return np.asarray(array.fill_null(0)).astype(np.int64, copy=False)


def _float_images(numbers: npt.NDArray[Any]) -> Values:
    """Integers that sort like the numbers: their bits; for negative numbers the lower 63 are inverted."""
    wide = numbers.astype(np.float64) + 0.0  # Adding zero makes minus zero plus zero.
    bits: npt.NDArray[np.int64] = wide.view(np.int64)
    images = np.where(bits < 0, np.bitwise_xor(bits, np.int64(0x7FFF_FFFF_FFFF_FFFF)), bits)
    images[np.isnan(wide)] = NAN_IMAGE
    return images


def _decimals(array: pa.Array) -> Values:
    """Unscaled values; values of types with more than 18 digits as 16 bytes with an inverted sign bit."""
    words = np.frombuffer(array.buffers()[1], np.dtype("<i8")).reshape(-1, 2)
    words = words[array.offset : array.offset + len(array)]
    if array.type.precision <= 18:
        return np.ascontiguousarray(words[:, 0])
    flipped = np.empty((len(words), 2), np.dtype(">u8"))
    flipped[:, 0] = words[:, 1].view(np.uint64) ^ np.uint64(_SIGN_BIT << 56)
    flipped[:, 1] = words[:, 0].view(np.uint64)
    return flipped.reshape(-1).view(f"S{_WIDE_DECIMAL_BYTES}")


def _prefixes(array: pa.Array, width: int) -> Values:
    """The first bytes of each value, padded with zero bytes."""
    _, offsets, data = array.cast(pa.binary()).buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    out = np.zeros((len(array), width), np.uint8)
    if data is None or not len(array):
        return out.reshape(-1).view(f"S{width}")
    content = np.frombuffer(data, np.uint8)
    starts, lengths = ends[:-1], np.diff(ends)
    for position in range(min(width, int(lengths.max()))):
        rows = np.flatnonzero(lengths > position)
        out[rows, position] = content[starts[rows] + position]
    return out.reshape(-1).view(f"S{width}")
