"""Task maps on Spark: the same functions as in threads, spread over the executors."""

from __future__ import annotations

import importlib
import json
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core import errors
from delta_core.errors import DeltaError, JobFailedError
from delta_core.execution.executor import JsonObject, TaskFunction
from delta_core.execution.limits import available_cpus
from spark_jobs.failures import as_delta_error
from spark_jobs.packaging import ensure_importable
from spark_jobs.spreading import one_row_each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAVE_BYTES = 4 << 20
"""Tasks go to Spark as rows; a Connect server holds them in memory, so they go in waves of about this."""

_RESULT_SCHEMA = "i int, ok boolean, payload string"


class SparkExecutor:
    """Maps a task function over tasks on Spark, one task to a partition.

    Args:
        spark: a session, or a function that makes one: called when the first task runs, so that work
            without tasks starts no JVM.
    """

    def __init__(self, spark: SparkSession | Callable[[], SparkSession]) -> None:
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
        """The session; made by this call when it was given as a function."""
        if self._spark is None:
            assert self._make is not None
            self._spark = self._make()
        return self._spark

    def cores_per_task(self, tasks: int) -> int:
        """The cores of one executor shared out among the tasks, when these are too few for all of them.

        On one machine (`local[n]`) that is known. On a cluster other applications may share a worker, so
        there a task keeps to the `spark.task.cpus` that the scheduler gave it.
        """
        conf = self.spark.conf
        local = re.fullmatch(r"local\[(\d+|\*)(?:,\d+)?\]", conf.get("spark.master", "") or "")
        if local is None:
            return max(1, int(conf.get("spark.task.cpus", "1") or 1))
        cores = available_cpus() if local[1] == "*" else int(local[1])
        return max(1, -(-cores // max(1, tasks)))

    def map(self, function: TaskFunction, tasks: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
        """Run every task; yield (index, result), wave by wave.

        The function is found by its name on the workers. A task that fails does not stop the others of
        its wave; the first error is raised, as the DeltaError it was, when the wave's results are out.

        Raises:
            DeltaError: what a task raised; JobFailedError for what was no DeltaError, and for a worker
                that was lost.
        """
        if not tasks:
            return
        ensure_importable(self.spark)
        name = f"{function.__module__}:{function.__qualname__}"
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
            frame = self.spark.createDataFrame(rows, "i int, task string")
            spread = one_row_each(frame, len(rows), "i")
            found = spread.mapInArrow(_task_runner(name), _RESULT_SCHEMA).collect()
        except Exception as error:
            raise as_delta_error(error, doing=f"running {name}") from error
        return sorted((row["i"], row["ok"], row["payload"]) for row in found)


def error_to_json(error: Exception) -> str:
    """A task's error as text for the way back to the driver."""
    if isinstance(error, DeltaError):
        document = {
            "class": type(error).__name__,
            "problem": error.problem,
            "cause": error.cause,
            "fix": error.fix,
        }
    else:
        where = traceback.extract_tb(error.__traceback__)
        last = f" at {where[-1].name}:{where[-1].lineno}" if where else ""
        document = {
            "class": JobFailedError.__name__,
            "problem": "A task failed in a way that is not foreseen",
            "cause": f"{type(error).__name__}: {error}{last}",
            "fix": "See the executor's log",
        }
    return json.dumps(document)


def error_from_json(text: str) -> DeltaError:
    """The error that `error_to_json` wrote."""
    document: dict[str, Any] = json.loads(text)
    found = getattr(errors, document["class"], JobFailedError)
    kind = found if isinstance(found, type) and issubclass(found, DeltaError) else JobFailedError
    return kind(document["problem"], cause=document["cause"], fix=document["fix"])


def resolve_function(name: str) -> TaskFunction:
    """The function that `module:qualified.name` names."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    function: TaskFunction = found
    return function


def _waves(strings: Sequence[str]) -> Iterator[range]:
    start = size = 0
    for index, text in enumerate(strings):
        if index > start and size + len(text) > WAVE_BYTES:
            yield range(start, index)
            start, size = index, 0
        size += len(text)
    yield range(start, len(strings))


def _task_runner(name: str) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = resolve_function(name)
        for batch in batches:
            for index, text in zip(batch["i"].to_pylist(), batch["task"].to_pylist(), strict=True):
                try:
                    ok, payload = True, json.dumps(dict(function(json.loads(text))))
                except Exception as error:  # every task's outcome goes back as data
                    ok, payload = False, error_to_json(error)
                yield pa.RecordBatch.from_pydict(
                    {"i": pa.array([index], pa.int32()), "ok": [ok], "payload": [payload]}
                )

    return run
