"""The progress of a running job: named events, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressEvent:
    """One step of a job.

    Attributes:
        name: `<step>.<moment>`, such as `data.written` or `commit.before`.
        done, total: units of work (tasks, files) when the step counts them, else None.
    """

    name: str
    job_id: str
    at_ms: int
    done: int | None = None
    total: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict, hash=False)


class ProgressSink(Protocol):
    """Receives events; must not raise."""

    def emit(self, event: ProgressEvent) -> None:
        """Receive one event."""
        ...


class NullProgress:
    """Drops every event."""

    def emit(self, event: ProgressEvent) -> None:
        return None
