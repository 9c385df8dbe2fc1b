"""Conversion of NumPy arrays to Arrow columns and back without importing pandas.

`pa.array` and `to_numpy` import pandas where it is installed, which takes 35 MiB and a third of a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def from_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Equivalent to `pa.array(values)` for integers, floating-point numbers and booleans. Shares numbers."""
    if values.dtype == np.bool_:
        packed = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])
    data = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(data.dtype), len(data), [None, pa.py_buffer(data)])


def to_numpy(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Equivalent to `column.to_numpy(zero_copy_only=False)` for numbers and booleans without nulls.

    One chunk of numbers is shared, and read-only. Booleans are copied.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            empty = np.zeros(0, dtype=column.type.to_pandas_dtype())
            return np.concatenate([empty, *(to_numpy(chunk) for chunk in column.chunks)])
        column = column.chunk(0)
    assert not column.null_count, "the column has nulls"
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), dtype=column.type.to_pandas_dtype())
    first, end = column.offset, column.offset + len(column)
    if pa.types.is_boolean(column.type):
        bits = np.frombuffer(data, dtype=np.uint8)
        return np.unpackbits(bits, count=end, bitorder="little")[first:].astype(np.bool_)
    return np.frombuffer(data, dtype=column.type.to_pandas_dtype(), count=end)[first:]
