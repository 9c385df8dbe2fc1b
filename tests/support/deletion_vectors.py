"""Deletion vectors made by hand."""

from __future__ import annotations

from pyroaring import BitMap64

from delta_core.actions import DeletionVectorDescriptor


def inline_vector(rows: list[int]) -> DeletionVectorDescriptor:
    """A vector that is kept inline."""
    alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    data = (1681511377).to_bytes(4, "little") + bytes(BitMap64(rows).serialize())
    padded = data + bytes(-len(data) % 4)
    text = ""
    for at in range(0, len(padded), 4):
        group = int.from_bytes(padded[at : at + 4], "big")
        text += "".join(alphabet[group // 85**power % 85] for power in range(4, -1, -1))
    return DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv=text, size_in_bytes=len(data), cardinality=len(rows)
    )
