"""The binary encoding of variants (apache/parquet-format, VariantEncoding.md), as needed for reassembly.

A variant has two binary fields: `metadata`, the dictionary of all field names, and `value`. Every offset and
length is checked against the available bytes before use.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

NULL = b"\x00"
"""The variant null: a present value, unlike a missing one."""

_VERSION = 1
_SHORT_STRING, _OBJECT, _ARRAY = 1, 2, 3
_MAX_SHORT_STRING = 63
# Sizes of primitive values without the header byte. Strings and binaries store their sizes.
_FIXED_SIZES = dict(enumerate((0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4))) | {17: 8, 18: 8, 19: 8, 20: 16}
_SIZED = frozenset({15, 16})
_STRING_ID = 16


class MalformedVariant(ValueError):  # noqa: N818 - the name is clear without the suffix
    """The bytes are not a valid variant; the message states the reason."""


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The field names of one variant.

    Attributes:
        names: by id, as UTF-8.
        ids: by name; for a duplicate name the first id.
    """

    names: Sequence[bytes]
    ids: Mapping[bytes, int]

    @classmethod
    def parse(cls, metadata: bytes) -> Dictionary:
        """The dictionary in a variant's `metadata`.

        Raises:
            MalformedVariant: the dictionary is damaged, or its version is not supported.
        """
        if not metadata or metadata[0] & 0x0F != _VERSION:
            raise MalformedVariant(
                f"The metadata begins with {metadata[:1].hex() or 'nothing'}, not with version {_VERSION}."
            )
        width = (metadata[0] >> 6) + 1
        size = _number(metadata, 1, width)
        offsets = _numbers(metadata, 1 + width, size + 1, width)
        start = 1 + width * (size + 2)
        if offsets[0] != 0 or start + offsets[-1] > len(metadata):
            raise MalformedVariant("The names in the metadata are longer than the metadata.")
        names = []
        for begin, end in pairwise(offsets):
            if begin > end:
                raise MalformedVariant("A name in the metadata ends before it begins.")
            names.append(metadata[start + begin : start + end])
        ids: dict[bytes, int] = {}
        for number, name in enumerate(names):
            ids.setdefault(name, number)
        return cls(names, ids)


# ------------------------------------------------------------ decoding


def object_fields(value: bytes, dictionary: Dictionary) -> dict[bytes, bytes]:
    """The encoded fields of an object by name.

    Raises:
        MalformedVariant: the value is not an object, or is damaged.
    """
    if not value or value[0] & 0x03 != _OBJECT:
        raise MalformedVariant("The value next to the columns of a shredded object is not an object.")
    header = value[0] >> 2
    offset_width, id_width = (header & 0x03) + 1, (header >> 2 & 0x03) + 1
    count_width = 4 if header >> 4 & 1 else 1
    count = _number(value, 1, count_width)
    at = 1 + count_width
    ids = _numbers(value, at, count, id_width)
    offsets = _numbers(value, at + count * id_width, count + 1, offset_width)
    start = at + count * id_width + (count + 1) * offset_width
    fields: dict[bytes, bytes] = {}
    for number, offset in zip(ids, offsets, strict=False):
        if number >= len(dictionary.names):
            raise MalformedVariant(f"The metadata has no field {number}.")
        begin = start + offset
        end = begin + value_size(value, begin)
        if end > start + offsets[-1]:
            raise MalformedVariant("A field of an object extends beyond the object.")
        name = dictionary.names[number]
        if name in fields:
            raise MalformedVariant(f"An object has the field {_shown(name)} twice.")
        fields[name] = value[begin:end]
    return fields


def array_values(value: bytes) -> list[bytes]:
    """The encoded elements of an array.

    Raises:
        MalformedVariant: the value is not an array, or is damaged.
    """
    if not value or value[0] & 0x03 != _ARRAY:
        raise MalformedVariant("The value is not an array.")
    header = value[0] >> 2
    offset_width, count_width = (header & 0x03) + 1, 4 if header >> 2 & 1 else 1
    count = _number(value, 1, count_width)
    offsets = _numbers(value, 1 + count_width, count + 1, offset_width)
    start = 1 + count_width + (count + 1) * offset_width
    if start + offsets[-1] > len(value):
        raise MalformedVariant("An array extends beyond the end of the value.")
    if any(begin + value_size(value, start + begin) > end for begin, end in pairwise(offsets)):
        raise MalformedVariant("An element of an array extends beyond its end.")
    return [value[start + begin : start + end] for begin, end in pairwise(offsets)]


def kind_of(value: bytes) -> str:
    """The kind of a value: `object`, `array`, `string` or `other`."""
    kind = value[0] & 0x03
    if kind in (_OBJECT, _ARRAY):
        return "object" if kind == _OBJECT else "array"
    return "string" if kind == _SHORT_STRING or value[0] >> 2 == _STRING_ID else "other"


def string_bytes(value: bytes) -> bytes:
    """The bytes of a string, which should be UTF-8."""
    return value[1:] if value[0] & 0x03 == _SHORT_STRING else value[5:]


def value_size(data: bytes, at: int) -> int:
    """The size in bytes of the value that begins at the offset `at`; nested values are not checked.

    Raises:
        MalformedVariant: the value is missing or incomplete.
    """
    if at >= len(data):
        raise MalformedVariant("A value begins beyond the end.")
    kind, header = data[at] & 0x03, data[at] >> 2
    if kind == _SHORT_STRING:
        size = 1 + header
    elif kind in (_OBJECT, _ARRAY):
        flags = header if kind == _ARRAY else header >> 2
        count_width = 4 if flags >> 2 & 1 else 1
        count = _number(data, at + 1, count_width)
        offset_width = (header & 0x03) + 1
        ids = count * ((header >> 2 & 0x03) + 1) if kind == _OBJECT else 0
        last = at + 1 + count_width + ids + count * offset_width
        size = last + offset_width - at + _number(data, last, offset_width)
    elif header in _SIZED:
        size = 5 + _number(data, at + 1, 4)
    elif header in _FIXED_SIZES:
        size = 1 + _FIXED_SIZES[header]
    else:
        raise MalformedVariant(f"The primitive type {header} does not exist.")
    if at + size > len(data):
        raise MalformedVariant("A value extends beyond the end.")
    return size


def _number(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise MalformedVariant("The value ends too early.")
    return int.from_bytes(data[at : at + width], "little")


def _numbers(data: bytes, at: int, count: int, width: int) -> list[int]:
    # Checked before reading: a few bytes can claim billions of numbers.
    if at + count * width > len(data):
        raise MalformedVariant("The value ends too early.")
    return [int.from_bytes(data[p : p + width], "little") for p in range(at, at + count * width, width)]


# ------------------------------------------------------------ encoding


def encode_object(fields: Mapping[bytes, bytes], dictionary: Dictionary) -> bytes:
    """Encode an object from its encoded fields.

    Raises:
        MalformedVariant: the dictionary lacks a name.
    """
    names = sorted(fields)  # by their UTF-8 bytes, as the format requires
    missing = next((name for name in names if name not in dictionary.ids), None)
    if missing is not None:
        raise MalformedVariant(f"The metadata has no field {_shown(missing)}.")
    ids = [dictionary.ids[name] for name in names]
    id_width = _width(max(ids, default=0))
    return _container(_OBJECT, [fields[name] for name in names], ids, id_width)


def encode_array(values: Sequence[bytes]) -> bytes:
    """Encode an array from its encoded elements."""
    return _container(_ARRAY, values, (), 1)


def _container(kind: int, values: Sequence[bytes], ids: Sequence[int], id_width: int) -> bytes:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    offset_width = _width(offsets[-1])
    is_large = len(values) > 0xFF
    header = offset_width - 1
    if kind == _OBJECT:
        header |= (id_width - 1) << 2 | is_large << 4
    else:
        header |= is_large << 2
    parts = [bytes([header << 2 | kind]), len(values).to_bytes(4 if is_large else 1, "little")]
    parts += [number.to_bytes(id_width, "little") for number in ids]
    parts += [offset.to_bytes(offset_width, "little") for offset in offsets]
    return b"".join((*parts, *values))


def encode_string(string: bytes) -> bytes:
    """Encode a string from its UTF-8 bytes."""
    if len(string) <= _MAX_SHORT_STRING:
        return bytes([len(string) << 2 | _SHORT_STRING]) + string
    return encode_sized(_STRING_ID, string)


def encode_sized(type_id: int, data: bytes) -> bytes:
    """Encode a string or a binary with its length before the data."""
    return bytes([type_id << 2]) + struct.pack("<I", len(data)) + data


def encode_integer(number: int) -> bytes:
    """Encode an integer in the narrowest type that holds it.

    Readers treat the widths as one type, and unshredded values are written in the narrowest type.
    """
    bits = (number if number >= 0 else ~number).bit_length() + 1
    type_id, width = (3, 1) if bits <= 8 else (4, 2) if bits <= 16 else (5, 4) if bits <= 32 else (6, 8)
    return bytes([type_id << 2]) + number.to_bytes(width, "little", signed=True)


def encode_decimal(unscaled: int, scale: int) -> bytes:
    """Encode a decimal in the narrowest type that holds it."""
    digits = max(len(str(abs(unscaled))), scale)
    type_id, width = (8, 4) if digits <= 9 else (9, 8) if digits <= 18 else (10, 16)
    return bytes([type_id << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _shown(name: bytes) -> str:
    return repr(name[:80].decode("utf-8", "replace"))
