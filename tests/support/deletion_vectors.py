"""Deletion vectors made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyroaring import BitMap64

from delta_core.actions import DeletionVectorDescriptor

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def inline_rows(descriptor: Mapping[str, Any] | None) -> frozenset[int]:
    """The rows that a `deletionVector` of the log names, which is kept inline; none without one."""
    if descriptor is None:
        return frozenset()
    text = descriptor["pathOrInlineDv"]
    assert descriptor["storageType"] == "i"
    data = b""
    for at in range(0, len(text), 5):
        group = 0
        for letter in text[at : at + 5]:
            group = group * 85 + _ALPHABET.index(letter)
        data += group.to_bytes(4, "big")
    found = frozenset(BitMap64.deserialize(data[4 : descriptor["sizeInBytes"]]))
    assert len(found) == descriptor["cardinality"]
    return found


def inline_vector(rows: list[int]) -> DeletionVectorDescriptor:
    """A vector that is kept inline."""
    data = (1681511377).to_bytes(4, "little") + bytes(BitMap64(rows).serialize())
    padded = data + bytes(-len(data) % 4)
    text = ""
    for at in range(0, len(padded), 4):
        group = int.from_bytes(padded[at : at + 4], "big")
        text += "".join(_ALPHABET[group // 85**power % 85] for power in range(4, -1, -1))
    return DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv=text, size_in_bytes=len(data), cardinality=len(rows)
    )
