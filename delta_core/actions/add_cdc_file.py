"""`cdc`: a file of change data (PROTOCOL.md, "Add CDC File")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CHANGE_DATA_DIRECTORY = "_change_data"
"""The directory of change data files, directly below the table root (PROTOCOL.md, "Change Data Files")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCdcFile:
    """A file of rows that changed in one version."""

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    size_bytes: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = field(default=None, hash=False)
