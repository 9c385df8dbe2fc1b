"""The version and the user metadata of the commit that carried an idempotency key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedCommit:
    """The commit that applied a piece of work.

    Attributes:
        version: the version that the commit created.
        user_metadata: the commit's user metadata. For orchestrated work it holds the DAG, task, run and try.
    """

    version: int
    user_metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
