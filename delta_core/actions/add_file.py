"""`add`: a data file that is part of the table (PROTOCOL.md, "Add File and Remove File")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delta_core.actions.deletion_vector import DeletionVectorDescriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFile:
    """One live file.

    Attributes:
        path: the path as stored in the log: URL-encoded, relative to the table root or absolute.
        partition_values: serialised strings by physical column name; None is null.
        modification_time_ms: the file's modification time in epoch milliseconds.
        stats: the statistics as unparsed JSON.
    """

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    size_bytes: int
    modification_time_ms: int
    data_change: bool = True
    stats: str | None = None
    tags: Mapping[str, str | None] | None = field(default=None, hash=False)
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
