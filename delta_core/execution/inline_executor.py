"""Task maps in threads of this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from delta_core.errors import ConfigurationError
from delta_core.execution.executor import JsonObject, TaskFunction
from delta_core.execution.limits import available_cpus


class InlineExecutor:
    """Runs tasks in threads. Suits work that releases the global interpreter lock, as Arrow's does.

    Args:
        max_workers: how many tasks run in parallel; None means one per processor.
    """

    def __init__(self, max_workers: int | None = None) -> None:
        if max_workers is not None and max_workers < 1:
            raise ConfigurationError(
                f"An executor cannot have {max_workers} workers.",
                fix="Pass max_workers of at least 1, or None.",
            )
        self._max_workers = max_workers or available_cpus()

    @property
    def name(self) -> str:
        """The executor's name, `inline`."""
        return "inline"

    @property
    def max_workers(self) -> int:
        """How many tasks run in parallel."""
        return self._max_workers

    def cores_per_task(self, tasks: int) -> int:
        """The number of workers divided by the number of tasks, rounded up."""
        return max(1, -(-self._max_workers // max(1, tasks)))

    def map(self, function: TaskFunction, tasks: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
        """Run every task; yield (index, result) as they finish.

        At the first error no further task starts, the running ones end, and the error is raised.
        Closing the iterator early does the same without an error.
        """
        if not tasks:
            return
        with ThreadPoolExecutor(
            max_workers=min(self._max_workers, len(tasks)), thread_name_prefix="deltaward"
        ) as pool:
            futures: dict[Future[JsonObject], int] = {
                pool.submit(function, task): index for index, task in enumerate(tasks)
            }
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                for future in futures:
                    future.cancel()
