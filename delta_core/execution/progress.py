"""Progress of a job: events, the sinks that receive them, and the reporter that sends them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from delta_core.clock import SYSTEM_CLOCK, Clock

_LOGGER = logging.getLogger(__name__)

EVENT_NAMES: Final = (
    "job.started",
    "snapshot.loaded",
    "idempotency.checked",
    "files.planned",
    "rows.comparing",
    "data.writing",
    "data.written",
    "stats.collected",
    "quality.validating",
    "quality.validated",
    "quarantine.before",
    "quarantine.after",
    "commit.before",
    "commit.after",
    "checkpoint.before",
    "checkpoint.after",
    "job.finished",
)
"""The steps of a job, in order. A job leaves out the steps that it does not have.
`rows.comparing` and `data.writing` repeat."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReporter:
    """Adds the job id and the time to events and passes them to a sink.

    When a sink raises, its event is lost and a warning is logged. A report never ends the job.
    """

    sink: ProgressSink = field(default_factory=NullProgress)
    job_id: str = ""
    clock: Clock = SYSTEM_CLOCK

    def emit(self, name: str, *, done: int | None = None, total: int | None = None, **detail: Any) -> None:
        """Report one step; `detail` holds JSON values."""
        event = ProgressEvent(
            name=name, job_id=self.job_id, at_ms=self.clock.now_ms(), done=done, total=total, detail=detail
        )
        try:
            self.sink.emit(event)
        except Exception:  # the sink's failure is not the job's
            _LOGGER.warning("The progress sink failed.", extra={"event": name}, exc_info=True)


SILENT = ProgressReporter()
"""A reporter without a sink."""
