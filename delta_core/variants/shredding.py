"""Variants that a file keeps in several columns (apache/parquet-format, VariantShredding.md).

What could be put into a column of its own is in `typed_value`; the rest is in `value`. Both go back into
one value, column by column as far as that goes.
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
"""A variant in Arrow, whole."""

MAX_DEPTH = 128
"""How deep columns of a variant may be nested."""

_BINARY_ID = 15
_VALUE, _TYPED = "value", "typed_value"

Values = list[bytes | None]
"""One value for each row; None is missing."""


def is_shredded(data_type: pa.DataType) -> bool:
    """Whether a file's column may hold parts of variants, rather than each whole.

    Only to be asked of columns that are variants: a struct of the table can have these names, too, but then
    no field of it that a variant needs is optional.
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
    """The type to read a file's column of variants with: its own when they are in parts.

    Raises:
        MalformedVariant: the column holds no variants.
    """
    if is_shredded(data_type):
        return data_type
    if not pa.types.is_struct(data_type) or {"metadata", _VALUE} - {item.name for item in data_type.fields}:
        raise MalformedVariant(f"it is of type {data_type}, without `metadata` and `value`")
    return VARIANT_TYPE


def reassemble(array: pa.StructArray) -> pa.StructArray:
    """Variants of the type VARIANT_TYPE from a column for which `is_shredded` is true.

    Raises:
        MalformedVariant: the parts are damaged, do not fit together or are of a type that variants lack.
    """
    group = _children(array)
    rows = group.pop("metadata")
    if not pa.types.is_binary(rows.type):
        raise MalformedVariant(f"the metadata is of type {rows.type}")
    metadata: Values = rows.to_pylist()
    is_null = pc.is_null(array)
    absent = is_null.to_pylist()
    if any(data is None and not gone for data, gone in zip(metadata, absent, strict=True)):
        raise MalformedVariant("a value has no metadata")
    values = _values(group, _Dictionaries(metadata), 0)
    # Where a value is required, a missing one is the variant null.
    whole = [
        b"" if gone else NULL if value is None else value for value, gone in zip(values, absent, strict=True)
    ]
    return pa.StructArray.from_arrays(
        [pa.array([data or b"" for data in metadata], pa.binary()), pa.array(whole, pa.binary())],
        fields=list(VARIANT_TYPE.fields),
        mask=is_null,
    )


class _Dictionaries:
    """The dictionaries of some rows; equal ones are parsed once, and those that nobody needs never."""

    def __init__(self, metadata: Values, parsed: dict[bytes, Dictionary] | None = None) -> None:
        self._metadata = metadata
        self._parsed: dict[bytes, Dictionary] = {} if parsed is None else parsed

    def __len__(self) -> int:
        return len(self._metadata)

    def __getitem__(self, row: int) -> Dictionary:
        data = self._metadata[row] or b""
        found = self._parsed.get(data)
        if found is None:
            found = self._parsed[data] = Dictionary.parse(data)
        return found

    def repeated(self, counts: Sequence[int]) -> _Dictionaries:
        """Those of the elements of arrays, for the number of elements of each row."""
        metadata = [data for data, count in zip(self._metadata, counts, strict=True) for _ in range(count)]
        return _Dictionaries(metadata, self._parsed)


def _values(group: Mapping[str, pa.Array], dictionaries: _Dictionaries, depth: int) -> Values:
    """What a pair of `value` and `typed_value` says, row by row."""
    if depth > MAX_DEPTH:
        raise MalformedVariant(f"its columns are nested more than {MAX_DEPTH} deep")
    unknown = [name for name in group if name not in (_VALUE, _TYPED)]
    if unknown or not group:
        raise MalformedVariant(f"a value has the columns {sorted(group)}, not `value` and `typed_value`")
    value, typed = group.get(_VALUE), group.get(_TYPED)
    if value is not None and not pa.types.is_binary(value.type):
        raise MalformedVariant(f"a column `value` is of type {value.type}")
    stored: Values = [None] * len(dictionaries) if value is None else value.to_pylist()
    if typed is None or typed.null_count == len(typed):
        return stored
    if pa.types.is_struct(typed.type):
        return _objects(typed, stored, dictionaries, depth)
    is_list = pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type)
    found = _arrays(typed, dictionaries, depth) if is_list else _primitives(typed)
    return [_one_of(kept, other) for kept, other in zip(stored, found, strict=True)]


def _one_of(stored: bytes | None, found: bytes | None) -> bytes | None:
    if stored is not None and found is not None:
        raise MalformedVariant("`value` and `typed_value` both hold a value that is no object")
    return found if stored is None else stored


def _objects(typed: pa.StructArray, stored: Values, dictionaries: _Dictionaries, depth: int) -> Values:
    columns: dict[bytes, Values] = {}
    for text, child in _children(typed).items():
        if not pa.types.is_struct(child.type):
            raise MalformedVariant(f"the field {text!r} is of type {child.type}, not a group")
        columns[text.encode()] = _values(_children(child), dictionaries, depth + 1)
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
                    raise MalformedVariant(f"the field {name.decode('utf-8', 'replace')!r} is there twice")
                present[name] = value
        result.append(encode_object(present, dictionaries[row]))
    return result


def _arrays(typed: pa.Array, dictionaries: _Dictionaries, depth: int) -> Values:
    lengths = pc.list_value_length(typed).to_pylist()
    elements = typed.flatten()
    if not pa.types.is_struct(elements.type):
        raise MalformedVariant(f"the elements of an array are of type {elements.type}, not a group")
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
            raise MalformedVariant(f"a column is of type {kind}, which variants lack")
        return [None if n is None else encode_decimal(_unscaled(n), scale) for n in typed.to_pylist()]
    if pa.types.is_signed_integer(kind):
        encode = encode_integer
    elif pa.types.is_boolean(kind):
        encode = _encode_boolean
    elif pa.types.is_string(kind):
        encode = _encode_text
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
        raise MalformedVariant(f"a column is of type {kind}, which variants lack")
    return [None if item is None else encode(item) for item in typed.to_pylist()]


# Type id, layout of the bytes, and the type by which Arrow hands out what is packed.
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


def _encode_text(text: str) -> bytes:
    return encode_string(text.encode())


def _encode_binary(data: bytes) -> bytes:
    return encode_sized(_BINARY_ID, data)


def _unscaled(number: object) -> int:
    sign, digits, _ = number.as_tuple()  # type: ignore[attr-defined]
    magnitude = int("".join(map(str, digits)))
    return -magnitude if sign else magnitude


def _children(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct by name; null where the struct is.

    Raises:
        MalformedVariant: two fields have one name.
    """
    names = [field.name for field in array.type.fields]
    if len(set(names)) < len(names):
        raise MalformedVariant(f"two columns of a variant have one name, among {sorted(names)}")
    return dict(zip(names, array.flatten(), strict=True))
