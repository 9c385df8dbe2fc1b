"""Variants as plain values, decoded byte by byte: slow, and nothing of it is shared with the library."""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
import uuid
from decimal import Decimal
from itertools import pairwise
from typing import Any

_EPOCH = dt.datetime(1970, 1, 1)


def decode(variant: dict[str, bytes] | None) -> Any:
    """The value of a variant; None is also SQL's null."""
    if variant is None:
        return None
    found, end = _value(variant["value"], 0, _names(variant["metadata"]))
    assert end == len(variant["value"])
    return found


def as_json(variant: dict[str, bytes] | None) -> Any:
    """What `json.loads` makes of Spark's `to_json` of the variant."""
    return _plain(decode(variant))


def same_numbers(text: str | None) -> Any:
    """Spark's JSON of a variant, with numbers that compare with those of `as_json`."""
    return None if text is None else _plain(json.loads(text, parse_float=Decimal))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return format(Decimal(value).normalize(), "f")
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ").replace(".000000", "")
    return str(value) if isinstance(value, dt.date | uuid.UUID | dt.time) else value


def _names(metadata: bytes) -> list[str]:
    width = (metadata[0] >> 6) + 1
    size = int.from_bytes(metadata[1 : 1 + width], "little")
    numbers = [
        int.from_bytes(metadata[1 + width * n : 1 + width * (n + 1)], "little") for n in range(1, size + 2)
    ]
    start = 1 + width * (size + 2)
    return [metadata[start + a : start + b].decode() for a, b in pairwise(numbers)]


def _value(data: bytes, at: int, names: list[str]) -> tuple[Any, int]:
    kind, header = data[at] & 3, data[at] >> 2
    at += 1
    if kind == 1:
        return data[at : at + header].decode(), at + header
    if kind == 0:
        return _primitive(data, at, header)
    flags = header >> 2 if kind == 2 else header
    count_width = 4 if flags >> 2 & 1 else 1
    count = int.from_bytes(data[at : at + count_width], "little")
    at += count_width
    ids = []
    if kind == 2:
        id_width = (header >> 2 & 3) + 1
        ids = [
            int.from_bytes(data[at + id_width * n : at + id_width * (n + 1)], "little") for n in range(count)
        ]
        at += id_width * count
    width = (header & 3) + 1
    offsets = [
        int.from_bytes(data[at + width * n : at + width * (n + 1)], "little") for n in range(count + 1)
    ]
    at += width * (count + 1)
    values = [_value(data, at + offset, names)[0] for offset in offsets[:-1]]
    if kind == 3:
        return values, at + offsets[-1]
    keys = [names[number] for number in ids]
    assert keys == sorted(keys, key=str.encode)
    assert len(set(keys)) == count
    return dict(zip(keys, values, strict=True)), at + offsets[-1]


def _primitive(data: bytes, at: int, header: int) -> tuple[Any, int]:
    def number(width: int) -> int:
        assert len(data) >= at + width
        return int.from_bytes(data[at : at + width], "little", signed=True)

    if header <= 2:
        return (None, True, False)[header], at
    if header <= 6:
        width = 1 << header - 3
        return number(width), at + width
    if header in (7, 14):
        layout, width = ("<d", 8) if header == 7 else ("<f", 4)
        return struct.unpack_from(layout, data, at)[0], at + width
    if header in (8, 9, 10):
        width = 4 << header - 8
        unscaled = int.from_bytes(data[at + 1 : at + 1 + width], "little", signed=True)
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -data[at])), at + 1 + width
    if header == 11:
        return dt.date(1970, 1, 1) + dt.timedelta(days=number(4)), at + 4
    if header in (12, 13, 18, 19):
        micros = number(8) if header < 18 else number(8) // 1000
        zone = dt.UTC if header in (12, 18) else None
        return (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=zone), at + 8
    if header == 17:
        return (_EPOCH + dt.timedelta(microseconds=number(8))).time(), at + 8
    if header == 20:
        return uuid.UUID(bytes=data[at : at + 16]), at + 16
    assert header in (15, 16)
    size = int.from_bytes(data[at : at + 4], "little")
    payload = data[at + 4 : at + 4 + size]
    assert len(payload) == size
    return payload if header == 15 else payload.decode(), at + 4 + size
