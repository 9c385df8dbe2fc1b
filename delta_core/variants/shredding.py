"""Reassembly of shredded variants (apache/parquet-format, VariantShredding.md).

Values that fit a shredded column are in `typed_value`; the rest is in `value`. This module combines both into
one value, column by column as far as possible.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.variants.encoding import (
    NULL,
    Dictionary,
    MalformedVariant,
    encode_array,
    encode_decimal,
    encode_integer,
    encode_object,
    encode_sized,
    encode_string,
    object_fields,
)

VARIANT_TYPE = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
"""An unshredded variant in Arrow."""

MAX_DEPTH = 128
"""The maximum nesting of the columns of a variant."""

_BINARY_ID = 15
_VALUE, _TYPED = "value", "typed_value"

Values = list[bytes | None]
"""One value for each row; None is a missing value."""


def is_shredded(data_type: pa.DataType) -> bool:
    """Whether a file's variant column may be shredded.

    Only call this for variant columns. A struct of the table can have the same field names, but in an
    unshredded variant none of the fields is optional.
    """
    if not pa.types.is_struct(data_type):
        return False
    fields = {field.name: field for field in data_type.fields}
    parts = [field for name, field in fields.items() if name in (_VALUE, _TYPED)]
    return (
        "metadata" in fields
        and fields.keys() <= {"metadata", _VALUE, _TYPED}
        and any(field.nullable for field in parts)
    )


def variant_in_file(data_type: pa.DataType) -> pa.DataType:
    """The type for reading a file's variant column: the file's own type when the column is shredded.

    Raises:
        MalformedVariant: the column does not contain variants.
    """
    if is_shredded(data_type):
        return data_type
    if not pa.types.is_struct(data_type) or {"metadata", _VALUE} - {item.name for item in data_type.fields}:
        raise MalformedVariant(f"The type is {data_type}, without `metadata` and `value`.")
    return VARIANT_TYPE


def reassemble(array: pa.StructArray) -> pa.StructArray:
    """Reassemble a column for which `is_shredded` is true to variants of the type VARIANT_TYPE.

    Raises:
        MalformedVariant: the columns are damaged, contradict each other, or have a type without a variant
            encoding.
    """
    group = _children(array)
    rows = group.pop("metadata")
    if not pa.types.is_binary(rows.type):
        raise MalformedVariant(f"The metadata has type {rows.type}, not binary.")
    metadata: Values = rows.to_pylist()
    is_null = pc.is_null(array)
    absent = is_null.to_pylist()
    if any(data is None and not null for data, null in zip(metadata, absent, strict=True)):
        raise MalformedVariant("A value has no metadata.")
    values = _values(group, _Dictionaries(metadata), 0)
    # Where a value is required, a missing value is read as the variant null.
    whole = [
        b"" if null else NULL if value is None else value for value, null in zip(values, absent, strict=True)
    ]
    return pa.StructArray.from_arrays(
        [pa.array([data or b"" for data in metadata], pa.binary()), pa.array(whole, pa.binary())],
        fields=list(VARIANT_TYPE.fields),
        mask=is_null,
    )


class _Dictionaries:
    """The dictionaries of some rows; equal ones are parsed once, and only when they are needed."""

    def __init__(self, metadata: Values, parsed: dict[bytes, Dictionary] | None = None) -> None:
        self._metadata = metadata
        self._parsed: dict[bytes, Dictionary] = {} if parsed is None else parsed

    def __len__(self) -> int:
        return len(self._metadata)

    def __getitem__(self, row: int) -> Dictionary:
        data = self._metadata[row] or b""
        dictionary = self._parsed.get(data)
        if dictionary is None:
            dictionary = self._parsed[data] = Dictionary.parse(data)
        return dictionary

    def repeated(self, counts: Sequence[int]) -> _Dictionaries:
        """The dictionaries for the elements of arrays, from the number of elements of each row."""
        metadata = [data for data, count in zip(self._metadata, counts, strict=True) for _ in range(count)]
        return _Dictionaries(metadata, self._parsed)


def _values(group: Mapping[str, pa.Array], dictionaries: _Dictionaries, depth: int) -> Values:
    """The values of a pair of `value` and `typed_value` columns, row by row."""
    if depth > MAX_DEPTH:
        raise MalformedVariant(f"The columns are nested more than {MAX_DEPTH} levels deep.")
    unknown = [name for name in group if name not in (_VALUE, _TYPED)]
    if unknown or not group:
        raise MalformedVariant(f"A value has the columns {sorted(group)}, not `value` and `typed_value`.")
    value, typed = group.get(_VALUE), group.get(_TYPED)
    if value is not None and not pa.types.is_binary(value.type):
        raise MalformedVariant(f"A column `value` has type {value.type}, not binary.")
    stored: Values = [None] * len(dictionaries) if value is None else value.to_pylist()
    if typed is None or typed.null_count == len(typed):
        return stored
    if pa.types.is_struct(typed.type):
        return _objects(typed, stored, dictionaries, depth)
    is_list = pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type)
    shredded = _arrays(typed, dictionaries, depth) if is_list else _primitives(typed)
    return [_one_of(unshredded, other) for unshredded, other in zip(stored, shredded, strict=True)]


def _one_of(stored: bytes | None, shredded: bytes | None) -> bytes | None:
    if stored is not None and shredded is not None:
        raise MalformedVariant("`value` and `typed_value` are both set, which is allowed only for objects.")
    return shredded if stored is None else stored


def _objects(typed: pa.StructArray, stored: Values, dictionaries: _Dictionaries, depth: int) -> Values:
    columns: dict[bytes, Values] = {}
    for field, child in _children(typed).items():
        if not pa.types.is_struct(child.type):
            raise MalformedVariant(f"The field {field!r} has type {child.type}, not a group.")
        columns[field.encode()] = _values(_children(child), dictionaries, depth + 1)
    result: Values = []
    for row, is_object in enumerate(typed.is_valid().to_pylist()):
        rest = stored[row]
        if not is_object:
            result.append(rest)
            continue
        shredded = ((name, values[row]) for name, values in columns.items())
        present = {name: value for name, value in shredded if value is not None}
        if rest is not None:
            for name, value in object_fields(rest, dictionaries[row]).items():
                if name in columns:
                    raise MalformedVariant(f"The field {name.decode('utf-8', 'replace')!r} exists twice.")
                present[name] = value
        result.append(encode_object(present, dictionaries[row]))
    return result


def _arrays(typed: pa.Array, dictionaries: _Dictionaries, depth: int) -> Values:
    lengths = pc.list_value_length(typed).to_pylist()
    elements = typed.flatten()
    if not pa.types.is_struct(elements.type):
        raise MalformedVariant(f"The elements of an array have type {elements.type}, not a group.")
    inner = dictionaries.repeated([length or 0 for length in lengths])
    values = [NULL if value is None else value for value in _values(_children(elements), inner, depth + 1)]
    result: Values = []
    start = 0
    for length in lengths:
        if length is None:
            result.append(None)
            continue
        result.append(encode_array(values[start : start + length]))
        start += length
    return result


def _primitives(typed: pa.Array) -> Values:
    if isinstance(typed, pa.ExtensionArray):
        typed = typed.storage
    kind = typed.type
    encode: Callable[..., bytes]
    if pa.types.is_decimal(kind):
        scale = kind.scale
        if not 0 <= scale <= kind.precision <= 38:
            raise MalformedVariant(f"A column has type {kind}, which has no variant encoding.")
        return [None if n is None else encode_decimal(_unscaled(n), scale) for n in typed.to_pylist()]
    if pa.types.is_signed_integer(kind):
        encode = encode_integer
    elif pa.types.is_boolean(kind):
        encode = _encode_boolean
    elif pa.types.is_string(kind):
        encode = _encode_str
    elif pa.types.is_binary(kind):
        encode = _encode_binary
    elif kind in _PACKED:
        type_id, layout, storage = _PACKED[kind]
        head, pack = bytes([type_id << 2]), struct.Struct(layout).pack
        return [None if n is None else head + pack(n) for n in _storage(typed, storage).to_pylist()]
    elif pa.types.is_timestamp(kind) and kind.unit in ("us", "ns"):
        type_id = (12 if kind.unit == "us" else 18) + (kind.tz is None)
        head, pack = bytes([type_id << 2]), struct.Struct("<q").pack
        return [None if n is None else head + pack(n) for n in typed.cast(pa.int64()).to_pylist()]
    else:
        raise MalformedVariant(f"A column has type {kind}, which has no variant encoding.")
    return [None if item is None else encode(item) for item in typed.to_pylist()]


# Type id, byte layout, and the Arrow type whose Python values are packed.
_PACKED: Mapping[pa.DataType, tuple[int, str, pa.DataType]] = {
    pa.float32(): (14, "<f", pa.float32()),
    pa.float64(): (7, "<d", pa.float64()),
    pa.date32(): (11, "<i", pa.int32()),
    pa.time64("us"): (17, "<q", pa.int64()),
    pa.binary(16): (20, "16s", pa.binary(16)),
}


def _storage(array: pa.Array, storage: pa.DataType) -> pa.Array:
    return array if array.type == storage else array.cast(storage)


def _encode_boolean(value: bool) -> bytes:
    return b"\x04" if value else b"\x08"


def _encode_str(string: str) -> bytes:
    return encode_string(string.encode())


def _encode_binary(data: bytes) -> bytes:
    return encode_sized(_BINARY_ID, data)


def _unscaled(number: object) -> int:
    sign, digits, _ = number.as_tuple()  # type: ignore[attr-defined]
    magnitude = int("".join(map(str, digits)))
    return -magnitude if sign else magnitude


def _children(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct by name; null where the struct is null.

    Raises:
        MalformedVariant: two fields have the same name.
    """
    names = [field.name for field in array.type.fields]
    if len(set(names)) < len(names):
        raise MalformedVariant(f"Two columns of a variant have the same name, among {sorted(names)}.")
    return dict(zip(names, array.flatten(), strict=True))
