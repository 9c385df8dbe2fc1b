"""Base85 in the ZeroMQ alphabet, as descriptors of deletion vectors use it."""

from __future__ import annotations

import numpy as np

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_CHARACTERS = np.frombuffer(_ALPHABET, np.uint8)
_INVALID = 255
_DIGITS = np.full(256, _INVALID, dtype=np.uint8)
_DIGITS[_CHARACTERS] = np.arange(85, dtype=np.uint8)


def encode(data: bytes) -> str:
    """The text: five characters for every four bytes, zeros added to the last ones.

    How many bytes there were, the text does not say.
    """
    groups = np.frombuffer(data + bytes(-len(data) % 4), ">u4").astype(np.uint32)
    digits = np.empty((len(groups), 5), np.uint8)
    for place in range(4, -1, -1):
        digits[:, place] = groups % 85
        groups //= 85
    return _CHARACTERS[digits].tobytes().decode("ascii")


def decode(text: str) -> bytes:
    """The bytes: four for every five characters.

    Raises:
        ValueError: a length that is no multiple of five, a foreign character, or a group above 2^32 - 1.
    """
    raw = np.frombuffer(text.encode("utf-8"), np.uint8)
    if len(raw) % 5:
        raise ValueError(f"base85 text has {len(raw)} characters, not a multiple of five")
    digits = _DIGITS[raw]
    if (digits == _INVALID).any():
        raise ValueError("base85 text has a character of another alphabet")
    groups = digits.reshape(-1, 5).astype(np.uint64) @ np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)
    if len(groups) and int(groups.max()) >= 1 << 32:
        raise ValueError("base85 text has a group above 2^32 - 1")
    return groups.astype(">u4").tobytes()
