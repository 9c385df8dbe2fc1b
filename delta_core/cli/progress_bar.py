"""A progress bar on standard error, fed by the job's events. It draws only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, Task, TaskID, TextColumn
from rich.text import Text

from delta_core.execution.progress import NullProgress, ProgressEvent, ProgressSink

_WORDS: Final = {
    "job.started": "opening the table",
    "snapshot.loaded": "planning",
    "idempotency.checked": "planning",
    "files.planned": "working",
    "data.writing": "writing",
    "data.written": "data written",
    "commit.before": "committing",
    "commit.after": "committed",
    "stats.collected": "statistics collected",
    "checkpoint.before": "writing a checkpoint",
    "checkpoint.after": "checkpoint written",
    "job.finished": "finished",
}


class _CountColumn(MofNCompleteColumn):
    """Done and total of the step; empty while the step does not count."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class BarSink:
    """A sink that shows the latest step, and a bar while the step counts."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID = progress.add_task("starting", total=None)

    def emit(self, event: ProgressEvent) -> None:
        """Show the event."""
        self._progress.update(
            self._task,
            description=_WORDS.get(event.name, event.name),
            total=event.total,
            completed=event.done or 0,
        )


@contextmanager
def progress_sink(*, quiet: bool = False) -> Iterator[ProgressSink]:
    """A sink that draws a bar when standard error is a terminal, and otherwise drops the events."""
    if quiet or not sys.stderr.isatty():
        yield NullProgress()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _CountColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield BarSink(progress)
