"""The deletion vector descriptor inside `add` and `remove` (PROTOCOL.md, "Deletion Vectors")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorDescriptor:
    """Where a deletion vector is and how many rows it deletes.

    Attributes:
        storage_type: `u` (file named by UUID), `i` (inline) or `p` (absolute path).
    """

    storage_type: str
    path_or_inline_dv: str
    offset: int | None = None
    size_in_bytes: int
    cardinality: int

    @property
    def unique_id(self) -> str:
        """With the file's path, the identity of a logical file (PROTOCOL.md, "Action Reconciliation")."""
        base = self.storage_type + self.path_or_inline_dv
        return base if self.offset is None else f"{base}@{self.offset}"
