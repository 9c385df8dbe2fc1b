"""Sinks of progress events for tests."""

from __future__ import annotations

from collections.abc import Callable

from delta_core.execution.progress import ProgressEvent


class CollectingSink:
    """Keeps every event in a list."""

    def __init__(self) -> None:
        self.events: list[ProgressEvent] = []

    def emit(self, event: ProgressEvent) -> None:
        """Append the event."""
        self.events.append(event)

    @property
    def names(self) -> list[str]:
        """The events' names, in order."""
        return [event.name for event in self.events]


class CallbackSink:
    """Calls a function with each event."""

    def __init__(self, callback: Callable[[ProgressEvent], None]) -> None:
        self._callback = callback

    def emit(self, event: ProgressEvent) -> None:
        """Call the function."""
        self._callback(event)
