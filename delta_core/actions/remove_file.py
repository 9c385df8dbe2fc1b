"""`remove`: a tombstone (PROTOCOL.md, "Add File and Remove File")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delta_core.actions.deletion_vector import DeletionVectorDescriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """One removed file. The action stays in the log state until its retention has passed."""

    path: str
    deletion_timestamp_ms: int | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = field(default=None, hash=False)
    size_bytes: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = field(default=None, hash=False)
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
