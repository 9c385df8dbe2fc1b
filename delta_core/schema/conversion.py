"""Lossless conversion of Arrow arrays between layouts and widths of a type.

Writers use it after `enforcement` has allowed the conversion. Readers use it for files that are older or
narrower than the schema. Nested types are rebuilt field by field, by name: a missing field is null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.schema.arrow import is_list_like
from delta_core.schema.large_arrays import narrowed, pieces

_NARROWED = frozenset({(pa.large_string(), pa.string()), (pa.large_binary(), pa.binary())})


def convert_chunked(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """`convert_array`, chunk by chunk; a chunk too large for the target's offsets becomes several chunks."""
    if column.type == target:
        return column
    parts = (part for chunk in column.chunks for part in pieces(chunk))
    return pa.chunked_array([convert_array(part, target) for part in parts], type=target)


def convert_array(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values with the Arrow type `target`.

    Struct fields match by name without regard to case. Missing fields become null; fields that are not in
    `target` are dropped.

    Raises:
        pa.ArrowInvalid: a value does not fit the target.
    """
    source = array.type
    if source == target:
        return array
    if pa.types.is_null(source):
        return pa.nulls(len(array), target)
    if pa.types.is_null(target):
        return pa.nulls(len(array))
    if isinstance(array, pa.ExtensionArray):
        return convert_array(array.storage, target)
    if pa.types.is_dictionary(source):
        plain = pa.DictionaryArray.from_arrays(array.indices, without_views(array.dictionary))
        return convert_array(plain.dictionary_decode(), target)
    if pa.types.is_run_end_encoded(source):
        runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, without_views(array.values))
        return convert_array(pc.run_end_decode(runs.slice(array.offset, len(array))), target)
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _convert_struct(array, target)
    if pa.types.is_map(target) and pa.types.is_map(source):
        return _convert_map(array, target)
    if pa.types.is_list(target) and is_list_like(source):
        return _convert_list(array, target)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(source):
        return _convert_timestamp(array, target)
    if pa.types.is_decimal(target) and pa.types.is_integer(source):
        # Arrow requires the precision of the widest integer, even when the target's holds every value.
        wide = array.cast(pa.decimal128(38, 0) if target.scale == 0 else pa.decimal256(76, target.scale))
        return wide.cast(target)
    if (source, target) in _NARROWED:
        return narrowed(array, target)
    return array.cast(target)


def without_views(array: pa.Array) -> pa.Array:
    """The same values without string or binary views, which not all of Arrow's functions support."""
    plain = _plain_type(array.type)
    return array if plain == array.type else convert_array(array, plain)


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    if data_type == pa.string_view():
        return pa.string()
    if data_type == pa.binary_view():
        return pa.binary()
    if pa.types.is_struct(data_type):
        return pa.struct([child.with_type(_plain_type(child.type)) for child in data_type])
    if pa.types.is_map(data_type):
        key, item = data_type.key_field, data_type.item_field
        return pa.map_(key.with_type(_plain_type(key.type)), item.with_type(_plain_type(item.type)))
    if is_list_like(data_type):
        element = data_type.value_field
        plain = _plain_type(element.type)
        return data_type if plain == element.type else pa.list_(element.with_type(plain))
    return data_type


def null_mask(array: pa.Array) -> pa.Array | None:
    """A boolean array, true where the value is null; None when no value is null."""
    return pc.is_null(array) if array.null_count else None


def _convert_struct(array: pa.StructArray, target: pa.StructType) -> pa.Array:
    children = {
        field.name.casefold(): child for field, child in zip(array.type.fields, array.flatten(), strict=True)
    }
    converted = []
    for field in target.fields:
        child = children.get(field.name.casefold())
        converted.append(
            pa.nulls(len(array), field.type) if child is None else convert_array(child, field.type)
        )
    if not converted:
        return pa.nulls(len(array), target) if array.null_count == len(array) else array.cast(target)
    return pa.StructArray.from_arrays(converted, fields=list(target.fields), mask=null_mask(array))


def _offsets(array: pa.Array, lengths: pa.Array) -> pa.Array:
    counts = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _convert_list(array: pa.Array, target: pa.ListType) -> pa.Array:
    offsets = _offsets(array, pc.list_value_length(array))
    values = convert_array(array.flatten(), target.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=null_mask(array))


def _convert_map(array: pa.MapArray, target: pa.MapType) -> pa.Array:
    # `keys` and `items` of a sliced map are not sliced; its offsets show the part to use.
    starts = array.offsets
    first, last = (starts[0].as_py(), starts[len(array)].as_py()) if len(array) else (0, 0)
    keys = convert_array(array.keys.slice(first, last - first), target.key_type)
    items = convert_array(array.items.slice(first, last - first), target.item_type)
    shifted = pc.subtract(starts, pa.scalar(first, pa.int32())) if first else starts
    if array.null_count == 0:
        return pa.MapArray.from_arrays(shifted, keys, items, type=target)
    return pa.MapArray.from_arrays(
        pa.array(shifted.to_numpy(zero_copy_only=False)[: len(array) + 1], pa.int32()),
        keys,
        items,
        type=target,
        mask=null_mask(array),
    )


def _convert_timestamp(array: pa.Array, target: pa.TimestampType) -> pa.Array:
    if array.type.tz is None and target.tz is not None:
        # Arrow reads a value without zone as UTC here, which is the meaning of INT96 files without a zone.
        return array.cast(pa.timestamp(array.type.unit)).cast(target)
    if array.type.tz is not None and target.tz is None:
        return array.cast(pa.timestamp(target.unit, array.type.tz)).cast(pa.int64()).cast(target)
    return array.cast(target)


def floor_to_microseconds(array: pa.Array) -> pa.Array:
    """Timestamps in nanoseconds rounded down to microseconds, for readers; other arrays unchanged."""
    if not (pa.types.is_timestamp(array.type) and array.type.unit == "ns"):
        return array
    ticks = array.cast(pa.int64())
    floored = pc.if_else(pc.less(ticks, 0), pc.divide(pc.subtract(ticks, 999), 1000), pc.divide(ticks, 1000))
    return floored.cast(pa.timestamp("us", array.type.tz))
