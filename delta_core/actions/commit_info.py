"""`commitInfo`: the provenance of a commit (PROTOCOL.md, "Commit Provenance Information").

This library writes it as the first action of a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """The writer and the operation of a commit. `extra` keeps the fields that other writers add."""

    timestamp_ms: int | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    operation_metrics: Mapping[str, Any] = field(default_factory=dict, hash=False)
    engine_info: str | None = None
    user_name: str | None = None
    user_metadata: str | None = None
    txn_id: str | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    in_commit_timestamp_ms: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
