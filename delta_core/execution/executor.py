"""How task maps run: the same pure function over tasks, inline in threads or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

JsonObject = Mapping[str, Any]
"""A JSON-serialisable mapping: tasks and results cross process borders as JSON text."""

TaskFunction = Callable[[JsonObject], JsonObject]
"""A module-level function (importable by name on every worker) from a task to its result."""


class Executor(Protocol):
    """Maps a task function over tasks."""

    @property
    def name(self) -> str:
        """`inline` or `spark`."""
        ...

    def cores_per_task(self, tasks: int) -> int:
        """How many processors each of so many tasks can keep busy; at least 1."""
        ...

    def map(self, function: TaskFunction, tasks: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
        """Run every task; yield (index into `tasks`, result) as they finish, in any order.

        The first error of a task is raised as the DeltaError it was, after the running ones have ended.
        """
        ...
