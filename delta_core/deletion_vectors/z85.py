"""Base85 encoding with the ZeroMQ alphabet, as in descriptors of deletion vectors."""

from __future__ import annotations

import numpy as np

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_CHARACTERS = np.frombuffer(_ALPHABET, np.uint8)
_INVALID = 255
_DIGITS = np.full(256, _INVALID, dtype=np.uint8)
_DIGITS[_CHARACTERS] = np.arange(85, dtype=np.uint8)


def encode(data: bytes) -> str:
    """The encoded string: five characters for every four bytes, the last of which are padded with zeros.

    The string does not contain the number of bytes.
    """
    groups = np.frombuffer(data + bytes(-len(data) % 4), ">u4").astype(np.uint32)
    digits = np.empty((len(groups), 5), np.uint8)
    for position in range(4, -1, -1):
        digits[:, position] = groups % 85
        groups //= 85
    return _CHARACTERS[digits].tobytes().decode("ascii")


def decode(encoded: str) -> bytes:
    """The decoded bytes: four for every five characters.

    Raises:
        ValueError: the length is not a multiple of five, or a character is not in the alphabet, or a group
            is above 2^32 - 1.
    """
    raw = np.frombuffer(encoded.encode("utf-8"), np.uint8)
    if len(raw) % 5:
        raise ValueError(f"Its base85 encoding has {len(raw)} characters, which is not a multiple of five.")
    digits = _DIGITS[raw]
    if (digits == _INVALID).any():
        raise ValueError("Its base85 encoding has a character outside of the alphabet.")
    groups = digits.reshape(-1, 5).astype(np.uint64) @ np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)
    if len(groups) and int(groups.max()) >= 1 << 32:
        raise ValueError("Its base85 encoding has a group above 2^32 - 1.")
    return groups.astype(">u4").tobytes()
