"""Removal of nulls in non-nullable fields of structs that are null themselves.

Arrow may or may not mark such a field as null, and its Parquet writer refuses the mark. Values within a null
struct are never written, so the mark can be removed.
"""

from __future__ import annotations

import pyarrow as pa

from delta_core.schema.arrow import is_list_like
from delta_core.schema.conversion import null_mask


def has_required_fields(data_type: pa.DataType) -> bool:
    """Whether the type contains a struct with a non-nullable field, at any level."""
    if pa.types.is_struct(data_type):
        return any(not f.nullable or has_required_fields(f.type) for f in data_type.fields)
    if pa.types.is_map(data_type):
        return has_required_fields(data_type.key_type) or has_required_fields(data_type.item_type)
    return is_list_like(data_type) and has_required_fields(data_type.value_type)


def without_hidden_nulls(array: pa.Array) -> pa.Array:
    """The array without null marks in non-nullable fields of structs. Values are not copied.

    Args:
        array: its non-nullable fields are null only within a null (`find_null_violations` finds none).
    """
    kind = array.type
    if pa.types.is_struct(kind):
        children = [
            _nested(array.field(index)) if field.nullable else _required(array.field(index))
            for index, field in enumerate(kind.fields)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind.fields), mask=null_mask(array))
    return _nested(array)


def _nested(array: pa.Array) -> pa.Array:
    kind = array.type
    if not has_required_fields(kind):
        return array
    if pa.types.is_struct(kind):
        return without_hidden_nulls(array)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [_nested(array.keys), _nested(array.items)], fields=[kind.key_field, kind.item_field]
        )
    else:
        entries = _nested(array.values)
    # `keys`, `items` and `values` ignore the array's offset, as the buffers do.
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )


def _required(array: pa.Array) -> pa.Array:
    array = _nested(array)
    if not array.null_count:
        return array
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(i) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind.fields))
    buffers = array.buffers()
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[kind.key_field, kind.item_field]
        )
        return pa.Array.from_buffers(kind, len(array), [None, buffers[1]], 0, array.offset, [entries])
    if is_list_like(kind):
        return pa.Array.from_buffers(kind, len(array), [None, buffers[1]], 0, array.offset, [array.values])
    return pa.Array.from_buffers(kind, len(array), [None, *buffers[1:]], 0, array.offset)
