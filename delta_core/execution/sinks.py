"""Sinks for progress events."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, TextIO

from delta_core.execution.progress import ProgressEvent, ProgressSink
from delta_core.forks import renew_lock_in_children


def event_to_json(event: ProgressEvent) -> str:
    """The event as one line of JSON, control characters escaped."""
    document: dict[str, Any] = {"name": event.name, "job_id": event.job_id, "at_ms": event.at_ms}
    if event.done is not None:
        document["done"] = event.done
    if event.total is not None:
        document["total"] = event.total
    if event.detail:
        document["detail"] = dict(event.detail)
    return json.dumps(document, default=str)


def event_from_json(text: str) -> ProgressEvent | None:
    """The event of a line that `event_to_json` wrote, or None when the line is not an event."""
    try:
        document = json.loads(text)
        return ProgressEvent(
            name=str(document["name"]),
            job_id=str(document["job_id"]),
            at_ms=int(document["at_ms"]),
            done=document.get("done"),
            total=document.get("total"),
            detail=dict(document.get("detail") or {}),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


class JsonLinesSink:
    """Writes one line per event, flushed, so that another process can follow.

    Args:
        stream: text stream to write to.
        prefix: put before each line, to distinguish events from other output on the same stream.
    """

    def __init__(self, stream: TextIO, *, prefix: str = "") -> None:
        self._stream = stream
        self._prefix = prefix
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    def emit(self, event: ProgressEvent) -> None:
        """Write the event as one line of JSON."""
        line = f"{self._prefix}{event_to_json(event)}\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


class TeeSink:
    """Passes each event to several sinks, in order."""

    def __init__(self, sinks: Sequence[ProgressSink]) -> None:
        self._sinks = tuple(sinks)

    def emit(self, event: ProgressEvent) -> None:
        """Pass the event to each sink."""
        for sink in self._sinks:
            sink.emit(event)
