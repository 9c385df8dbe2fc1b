"""Conversion of Python values to Arrow without importing pandas, as `pa.array` and `pa.scalar` do.

pyarrow imports pandas where it is installed, to check whether a value is a pandas object. The import takes a
third of the time of a first small read. This module writes plain values into Arrow's buffers directly, and
passes other values to pyarrow. `numpy_columns` converts NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa


def arrow_array(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Equivalent to `pa.array(values, data_type)`, with the same errors.

    Args:
        values: None is null; a map is a mapping, and a struct a mapping by field names.
        data_type: strings, booleans, numbers, and maps and structs of these avoid the import.
    """
    built = _built(values, data_type)
    return pa.array([_entries(value, data_type) for value in values], data_type) if built is None else built


def arrow_scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    """Equivalent to `pa.scalar(value, data_type)`, with the same errors."""
    built = _built([value], data_type)
    return pa.scalar(value, data_type) if built is None else built[0]


def _built(values: Sequence[Any], data_type: pa.DataType) -> pa.Array | None:
    """The array, or None where a value is not plain."""
    if pa.types.is_map(data_type):
        return _map_array(values, data_type)
    if pa.types.is_struct(data_type):
        return _struct_array(values, data_type)
    kind = _PLAIN.get(data_type)
    if kind is None or not all(value is None or type(value) is kind for value in values):
        return None
    if kind is str:
        return _string_array(values)
    filled = [kind() if value is None else value for value in values]
    if kind is bool:
        data = np.packbits(np.array(filled, dtype=np.bool_), bitorder="little")
    else:
        dtype = data_type.to_pandas_dtype()
        try:
            data = np.array(filled, dtype=np.float64 if kind is float else np.int64).astype(dtype, copy=False)
        except OverflowError:
            return None
        if kind is int and data.tolist() != filled:
            return None
    return pa.Array.from_buffers(data_type, len(values), [_validity(values), pa.py_buffer(data)])


def _string_array(values: Sequence[str | None]) -> pa.Array | None:
    try:
        encoded = [b"" if value is None else value.encode() for value in values]
    except UnicodeEncodeError:
        return None
    data = b"".join(encoded)
    if len(data) > _MOST_BYTES:
        return None
    offsets = _offsets([len(item) for item in encoded])
    return pa.Array.from_buffers(pa.string(), len(values), [_validity(values), offsets, pa.py_buffer(data)])


def _map_array(values: Sequence[Mapping[Any, Any] | None], data_type: pa.MapType) -> pa.Array | None:
    if not all(value is None or isinstance(value, Mapping) for value in values):
        return None
    present = [value or {} for value in values]
    keys = _built([key for value in present for key in value], data_type.key_type)
    items = _built([item for value in present for item in value.values()], data_type.item_type)
    if keys is None or items is None or keys.null_count:
        return None
    entries = pa.StructArray.from_arrays([keys, items], fields=[data_type.key_field, data_type.item_field])
    buffers = [_validity(values), _offsets([len(value) for value in present])]
    return pa.Array.from_buffers(data_type, len(values), buffers, children=[entries])


def _struct_array(values: Sequence[Mapping[str, Any] | None], data_type: pa.StructType) -> pa.Array | None:
    if not all(value is None or isinstance(value, Mapping) for value in values):
        return None
    children = []
    for field in data_type:
        child = _built([None if value is None else value.get(field.name) for value in values], field.type)
        if child is None:
            return None
        children.append(child)
    return pa.Array.from_buffers(data_type, len(values), [_validity(values)], children=children)


def _entries(value: Any, data_type: pa.DataType) -> Any:
    """A map in the form that `pa.array` accepts."""
    return list(value.items()) if pa.types.is_map(data_type) and isinstance(value, Mapping) else value


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    present = np.array([value is not None for value in values], dtype=np.bool_)
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


def _offsets(lengths: Sequence[int]) -> pa.Buffer:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.py_buffer(offsets)


_MOST_BYTES: Final = 2**31 - 1
_PLAIN: Final[Mapping[pa.DataType, type]] = {
    pa.string(): str,
    pa.bool_(): bool,
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64()), int),
    pa.float64(): float,
}

ARROW_TRUE: Final = arrow_scalar(True, pa.bool_())
ARROW_FALSE: Final = arrow_scalar(False, pa.bool_())
ARROW_ZERO: Final = arrow_scalar(0, pa.int64())
