"""Reader of Thrift's compact protocol, the encoding of Parquet footers.

Supports only what a footer needs. Structs become dictionaries by field number. Every length is checked
against the remaining bytes before it is used.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 24
_MAX_VARINT_BYTES = 10

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(1, 14)
_INTEGERS = (_I16, _I32, _I64)
_FIXED = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}


class MalformedThrift(ValueError):  # noqa: N818 - a signal to the caller, who names the file
    """The bytes are not a valid struct. The message is the reason."""


def read_struct(data: bytes) -> tuple[dict[int, Any], int]:
    """The struct at the start of the bytes, and the offset of its end.

    Raises:
        MalformedThrift: the struct is cut off, nested too deep, or has an unknown type.
    """
    reader = _Reader(data)
    try:
        return reader.struct(0), reader.at
    except IndexError:
        raise MalformedThrift("it is cut off") from None


class _Reader:
    """A position in the bytes. Numbers are read in place, since most of a footer is small numbers."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int) -> dict[int, Any]:
        if depth > MAX_DEPTH:
            raise MalformedThrift(f"it is nested more than {MAX_DEPTH} deep")
        data, at, number = self._data, self.at, 0
        fields: dict[int, Any] = {}
        while True:
            head = data[at]
            at += 1
            if head == 0:
                self.at = at
                return fields
            kind, step = head & 15, head >> 4
            if step:
                number += step
            else:
                self.at = at
                number = self._integer()
                at = self.at
            if number in fields:
                raise MalformedThrift(f"it has field {number} twice")
            if kind in _INTEGERS and data[at] < 0x80:
                value = data[at]
                at += 1
                fields[number] = (value >> 1) ^ -(value & 1)
            elif kind <= _FALSE and kind:
                fields[number] = kind == _TRUE
            else:
                self.at = at
                fields[number] = self.struct(depth + 1) if kind == _STRUCT else self._value(kind, depth)
                at = self.at

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._take(self._unsigned())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _MAP:
            return self._map(depth)
        if kind in _FIXED:
            return self._take(_FIXED[kind])
        raise MalformedThrift(f"it has a value of the unknown type {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > MAX_DEPTH:
            raise MalformedThrift(f"it is nested more than {MAX_DEPTH} deep")
        head = self._data[self.at]
        self.at += 1
        kind, count = head & 15, head >> 4
        if count == 15:
            count = self._unsigned()
        # An element takes at least one byte.
        if count > len(self._data) - self.at:
            raise MalformedThrift(f"a list claims {count} elements, more than fit")
        if kind in (_TRUE, _FALSE):
            return list(self._take(count))
        if kind == _STRUCT:
            return [self.struct(depth + 2) for _ in range(count)]
        if kind in _INTEGERS:
            return [self._integer() for _ in range(count)]
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _map(self, depth: int) -> list[tuple[Any, Any]]:
        count = self._unsigned()
        if not count:
            return []
        if depth > MAX_DEPTH:
            raise MalformedThrift(f"it is nested more than {MAX_DEPTH} deep")
        if count > len(self._data) - self.at:
            raise MalformedThrift(f"a map claims {count} entries, more than fit")
        kinds = self._data[self.at]
        self.at += 1
        return [
            (self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1)) for _ in range(count)
        ]

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self.at:
            raise MalformedThrift(f"it ends {size - len(self._data) + self.at} bytes early")
        part = self._data[self.at : self.at + size]
        self.at += size
        return part

    def _unsigned(self) -> int:
        data, at = self._data, self.at
        value = data[at]
        if value < 0x80:
            self.at = at + 1
            return value
        value &= 0x7F
        for place in range(1, _MAX_VARINT_BYTES):
            part = data[at + place]
            value |= (part & 0x7F) << (7 * place)
            if part < 0x80:
                self.at = at + place + 1
                return value
        raise MalformedThrift("a number does not end")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
