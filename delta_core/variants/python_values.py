"""Encoding of Python values as variants (apache/parquet-format, VariantEncoding.md)."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from delta_core.errors import SchemaMismatchError
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
)
from delta_core.variants.shredding import VARIANT_TYPE

_TRUE, _FALSE = b"\x04", b"\x08"
_DOUBLE_ID, _DATE_ID, _TIMESTAMP_ID, _TIMESTAMP_NTZ_ID, _BINARY_ID, _UUID_ID = 7, 11, 12, 13, 15, 20
_LONG_BITS, _HIGHEST_DIGITS = 63, 38
_MAX_DEPTH = 200
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def variant_array(values: Iterable[Any]) -> pa.StructArray:
    """Python values as a column of variants.

    Args:
        values: None for a row without a variant. Otherwise a bool, int, float, Decimal, str, bytes, date,
            datetime, UUID, or a list, tuple or mapping of these with str keys. None within them is the
            variant null. A datetime without a zone stays without one.

    Raises:
        SchemaMismatchError: a value has a type that is not listed above, or is too large; the message has
            its position.
    """
    rows: list[dict[str, bytes] | None] = []
    for number, value in enumerate(values):
        try:
            rows.append(None if value is None else encoded(value))
        except (MalformedVariant, TypeError) as error:
            raise SchemaMismatchError(
                f"Value {number} cannot be a variant.",
                cause=str(error),
                fix="Pass strings, numbers, dates, times, bytes, UUIDs, lists, or mappings with string keys.",
            ) from error
    return pa.array(rows, VARIANT_TYPE)


def encoded(value: Any) -> dict[str, bytes]:
    """One value as a variant; None becomes the variant null.

    Raises:
        TypeError: the type has no variant encoding.
        MalformedVariant: the value is too large or nested too deeply.
    """
    names = sorted(set(_names(value, 0)))
    metadata = _metadata(names)
    return {"metadata": metadata, "value": _encode(value, Dictionary.parse(metadata))}


def _names(value: Any, depth: int) -> Iterator[bytes]:
    """The names of all fields. The depth is checked only here, since this visits every value."""
    if depth > _MAX_DEPTH:
        raise MalformedVariant(f"The value is nested more than {_MAX_DEPTH} levels deep.")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"The key {key!r} is not a string.")
            yield _utf8(key)
            yield from _names(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names(item, depth + 1)


def _metadata(names: list[bytes]) -> bytes:
    offsets = [0]
    for name in names:
        offsets.append(offsets[-1] + len(name))
    width = max(1, (max(offsets[-1], len(names)).bit_length() + 7) // 8)
    if width > 4:
        raise MalformedVariant("The names of the fields are too long.")
    # Version 1, with sorted names.
    parts = [bytes([1 | 1 << 4 | (width - 1) << 6]), len(names).to_bytes(width, "little")]
    parts += [offset.to_bytes(width, "little") for offset in offsets]
    return b"".join((*parts, *names))


def _encode(value: Any, dictionary: Dictionary) -> bytes:
    match value:
        case None:
            return NULL
        case bool():
            return _TRUE if value else _FALSE
        case int():
            return _integer(value)
        case float():
            return _fixed(_DOUBLE_ID, struct.pack("<d", value))
        case Decimal():
            return _decimal(value)
        case str():
            return encode_string(_utf8(value))
        case bytes() | bytearray():
            return encode_sized(_BINARY_ID, bytes(value))
        case dt.datetime():
            return _time(value)
        case dt.date():
            days = value.toordinal() - _EPOCH.toordinal()
            return _fixed(_DATE_ID, struct.pack("<i", days))
        case uuid.UUID():
            return _fixed(_UUID_ID, value.bytes)
        case Mapping():
            return encode_object({_utf8(key): _encode(v, dictionary) for key, v in value.items()}, dictionary)
        case list() | tuple():
            return encode_array([_encode(item, dictionary) for item in value])
    raise TypeError(f"The type {type(value).__name__} has no variant encoding.")


def _fixed(type_id: int, data: bytes) -> bytes:
    return bytes([type_id << 2]) + data


def _integer(number: int) -> bytes:
    if (number if number >= 0 else ~number).bit_length() <= _LONG_BITS:
        return encode_integer(number)
    return _decimal(Decimal(number))


def _decimal(number: Decimal) -> bytes:
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise MalformedVariant(f"The decimal {number} is not a number.")
    if len(digits) + abs(exponent) > 2 * _HIGHEST_DIGITS + 1:
        raise MalformedVariant(f"The number {number} has more than {_HIGHEST_DIGITS} digits.")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    if len(str(unscaled)) > _HIGHEST_DIGITS or scale > _HIGHEST_DIGITS:
        raise MalformedVariant(f"The number {number} has more than {_HIGHEST_DIGITS} digits.")
    return encode_decimal(-unscaled if sign else unscaled, scale)


def _time(value: dt.datetime) -> bytes:
    if value.tzinfo is None:
        return _fixed(_TIMESTAMP_NTZ_ID, struct.pack("<q", (value - _EPOCH) // _MICROSECOND))
    since = value - _EPOCH.replace(tzinfo=dt.UTC)
    return _fixed(_TIMESTAMP_ID, struct.pack("<q", since // _MICROSECOND))


def _utf8(string: str) -> bytes:
    try:
        return string.encode()
    except UnicodeEncodeError as error:
        raise MalformedVariant(f"The string {string!r} cannot be encoded in UTF-8.") from error
