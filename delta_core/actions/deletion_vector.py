"""The deletion vector descriptor inside `add` and `remove` (PROTOCOL.md, "Deletion Vectors")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorDescriptor:
    """The location of a deletion vector and the number of rows that it deletes.

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
        """The unique id: with the file's path it identifies a logical file.

        See PROTOCOL.md, "Action Reconciliation".
        """
        base = self.storage_type + self.path_or_inline_dv
        return base if self.offset is None else f"{base}@{self.offset}"
