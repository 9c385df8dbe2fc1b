"""The interface of executors: they map one pure function over tasks, in threads or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

JsonObject = Mapping[str, Any]
"""A JSON-serialisable mapping. Tasks and results cross process boundaries as JSON text."""

TaskFunction = Callable[[JsonObject], JsonObject]
"""A module-level function (importable by name on every worker) from a task to its result."""


class Executor(Protocol):
    """Maps a task function over tasks."""

    @property
    def name(self) -> str:
        """The executor's name: `inline` or `spark`."""
        ...

    def cores_per_task(self, tasks: int) -> int:
        """How many processors each task can keep busy when this many tasks run; at least 1."""
        ...

    def map(self, function: TaskFunction, tasks: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
        """Run every task; yield (index into `tasks`, result) as they finish, in any order.

        The first error of a task is raised as a DeltaError, after the running tasks have ended.
        """
        ...
