"""Task maps on Spark: the same task functions as in threads, distributed to the executors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from delta_core.errors import DeltaError
from delta_core.execution.executor import JsonObject, TaskFunction
from spark_jobs.engine_io import executor_options
from spark_jobs.failures import as_delta_error
from spark_jobs.packaging import ensure_importable
from spark_jobs.partitioning import local_cores, one_row_per_partition
from spark_jobs.worker_tasks import RESULT_SCHEMA, TASK_SCHEMA, error_from_json, function_name, task_runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAVE_BYTES = 4 << 20
"""The approximate size of a wave of tasks. Tasks are sent as rows, which a Connect server holds in memory."""


class SparkExecutor:
    """Maps a task function over tasks on Spark, with one task per partition.

    Args:
        spark: a session, or a function that creates one. The function is called when the first task runs, so
            that work without tasks starts no JVM.
        storage_options: options for the stores that tasks open. Secrets among them stay in this process:
            executors find credentials in their environment. See `spark_jobs.engine_io`.
    """

    def __init__(
        self,
        spark: SparkSession | Callable[[], SparkSession],
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._options = executor_options(storage_options)
        self._spark: SparkSession | None = None
        self._make: Callable[[], SparkSession] | None = None
        if callable(spark):
            self._make = spark
        else:
            self._spark = spark

    @property
    def name(self) -> str:
        """Always `spark`."""
        return "spark"

    @property
    def spark(self) -> SparkSession:
        """The session. The first access creates it when it was given as a function."""
        if self._spark is None:
            assert self._make is not None
            self._spark = self._make()
        return self._spark

    def cores_per_task(self, tasks: int) -> int:
        """The number of cores that each task may use, when there are fewer tasks than cores.

        With `local[n]` the cores are divided among the tasks. On a cluster other applications may share a
        worker, so a task uses `spark.task.cpus`.
        """
        cores = local_cores(self.spark)
        if cores is None:
            return max(1, int(self.spark.conf.get("spark.task.cpus", "1") or 1))
        return max(1, -(-cores // max(1, tasks)))

    def map(self, function: TaskFunction, tasks: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
        """Run every task; yield (index, result), wave by wave.

        The workers import the function by its name. A failed task does not stop the other tasks of its wave.
        After the results of the wave, the first error is raised as the original DeltaError.

        Raises:
            DeltaError: a task raised it. It is a JobFailedError when a task raised an exception that is not a
                DeltaError, or when a worker was lost.
        """
        if not tasks:
            return
        ensure_importable(self.spark)
        name = function_name(function)
        strings = [json.dumps(task) for task in tasks]
        for wave in _waves(strings):
            failure: DeltaError | None = None
            for index, ok, payload in self._run(name, wave, strings):
                if ok:
                    yield index, json.loads(payload)
                elif failure is None:
                    failure = error_from_json(payload)
            if failure is not None:
                raise failure

    def _run(self, name: str, wave: range, strings: Sequence[str]) -> list[tuple[int, bool, str]]:
        rows = [(index, strings[index]) for index in wave]
        try:
            frame = self.spark.createDataFrame(rows, TASK_SCHEMA)
            spread = one_row_per_partition(frame, len(rows), "i")
            found = spread.mapInArrow(task_runner(name, self._options), RESULT_SCHEMA).collect()
        except Exception as error:
            raise as_delta_error(error, doing=f"running {name}") from error
        return sorted((row["i"], row["ok"], row["payload"]) for row in found)


def _waves(strings: Sequence[str]) -> Iterator[range]:
    start = size = 0
    for index, task_json in enumerate(strings):
        if index > start and size + len(task_json) > WAVE_BYTES:
            yield range(start, index)
            start, size = index, 0
        size += len(task_json)
    yield range(start, len(strings))
