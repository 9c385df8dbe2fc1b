"""Deletion vectors made by hand."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from pyroaring import BitMap64

from delta_core.actions import DeletionVectorDescriptor

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def inline_rows(descriptor: Mapping[str, Any] | None) -> frozenset[int]:
    """The rows that a `deletionVector` of the log names, which is kept inline; none without one."""
    if descriptor is None:
        return frozenset()
    assert descriptor["storageType"] == "i"
    data = _decoded(descriptor["pathOrInlineDv"])
    found = frozenset(BitMap64.deserialize(data[4 : descriptor["sizeInBytes"]]))
    assert len(found) == descriptor["cardinality"]
    return found


def deletion_vector_name(descriptor: Mapping[str, Any] | None) -> str | None:
    """The name, relative to the table, of the file of a `deletionVector`; None without one, and inline."""
    if descriptor is None or descriptor["storageType"] == "i":
        return None
    text = descriptor["pathOrInlineDv"]
    assert descriptor["storageType"] == "u"
    prefix = f"{text[:-20]}/" if text[:-20] else ""
    return f"{prefix}deletion_vector_{UUID(bytes=_decoded(text[-20:]))}.bin"


def deletion_vector_rows(
    descriptor: Mapping[str, Any] | None, read: Callable[[str], bytes]
) -> frozenset[int]:
    """The rows that a `deletionVector` of the log names, wherever it is kept; `read` gives a file's bytes."""
    name = deletion_vector_name(descriptor)
    if name is None or descriptor is None:
        return inline_rows(descriptor)
    file, offset, size = read(name), descriptor.get("offset", 0), descriptor["sizeInBytes"]
    assert int.from_bytes(file[offset : offset + 4], "big") == size
    data = file[offset + 4 : offset + 4 + size]
    assert int.from_bytes(file[offset + 4 + size : offset + 8 + size], "big") == zlib.crc32(data)
    found = frozenset(BitMap64.deserialize(data[4:]))
    assert len(found) == descriptor["cardinality"]
    return found


def _decoded(text: str) -> bytes:
    data = b""
    for at in range(0, len(text), 5):
        group = 0
        for letter in text[at : at + 5]:
            group = group * 85 + _ALPHABET.index(letter)
        data += group.to_bytes(4, "big")
    return data


def inline_deletion_vector(rows: list[int]) -> DeletionVectorDescriptor:
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
