"""What is known of the commit that carried an idempotency key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedBy:
    """The commit that did some work.

    Attributes:
        version: the version that it made.
        user_metadata: what it says of itself: for orchestrated work the DAG, task, run and try.
    """

    version: int
    user_metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
