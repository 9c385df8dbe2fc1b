"""Running task functions in Spark's Python workers: functions by name, tasks and results as JSON rows."""

from __future__ import annotations

import importlib
import json
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from delta_core import errors
from delta_core.errors import DeltaError, JobFailedError
from delta_core.execution.executor import TaskFunction

TASK_SCHEMA: Final = "i int, task string"
RESULT_SCHEMA: Final = "i int, ok boolean, payload string"


def task_runner(name: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow` from rows of `TASK_SCHEMA` to rows of `RESULT_SCHEMA`.

    Args:
        name: the name of the task function, as `function_name` returns it.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = resolve_function(name)
        for batch in batches:
            for index, task_json in zip(batch["i"].to_pylist(), batch["task"].to_pylist(), strict=True):
                try:
                    ok, payload = True, json.dumps(dict(function(json.loads(task_json))))
                except Exception as error:  # each task's outcome is returned as data
                    ok, payload = False, error_to_json(error)
                yield pa.RecordBatch.from_pydict(
                    {"i": pa.array([index], pa.int32()), "ok": [ok], "payload": [payload]}
                )

    return run


def function_name(function: TaskFunction) -> str:
    """The name by which the workers import a function: `module:qualified.name`."""
    return f"{function.__module__}:{function.__qualname__}"


def resolve_function(name: str) -> TaskFunction:
    """Import the function with the name `module:qualified.name`."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    function: TaskFunction = found
    return function


def error_to_json(error: Exception) -> str:
    """A task's error as JSON text, which the task sends to the driver."""
    if isinstance(error, DeltaError):
        document = {
            "class": type(error).__name__,
            "problem": error.problem,
            "cause": error.cause,
            "fix": error.fix,
        }
    else:
        frames = traceback.extract_tb(error.__traceback__)
        last = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
        document = {
            "class": JobFailedError.__name__,
            "problem": "A task failed with an unexpected error.",
            "cause": f"{type(error).__name__}: {error}{last}.",
            "fix": "Read the executor's log.",
        }
    return json.dumps(document)


def error_from_json(error_json: str) -> DeltaError:
    """Parse the error from the result of `error_to_json`."""
    document: dict[str, Any] = json.loads(error_json)
    found = getattr(errors, document["class"], JobFailedError)
    kind = found if isinstance(found, type) and issubclass(found, DeltaError) else JobFailedError
    return kind(document["problem"], cause=document["cause"], fix=document["fix"])
