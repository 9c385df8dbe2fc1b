"""Base85 of deletion vectors, past the library under test."""

from __future__ import annotations

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85_decode(text: str) -> bytes:
    """Four bytes for every five characters."""
    found = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for character in text[start : start + 5]:
            value = value * 85 + _Z85.index(character)
        found += value.to_bytes(4, "big")
    return bytes(found)


def z85_encode(data: bytes) -> str:
    """Five characters for every four bytes; the end is padded with zeros."""
    found = ""
    for start in range(0, len(data), 4):
        value = int.from_bytes(data[start : start + 4].ljust(4, b"\0"), "big")
        group = ""
        for _ in range(5):
            value, digit = divmod(value, 85)
            group = _Z85[digit] + group
        found += group
    return found
