"""Running task functions in Spark's Python workers: functions by name, tasks and results as JSON rows."""

from __future__ import annotations

import importlib
import json
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from delta_core import errors
from delta_core.errors import DeltaError, JobFailedError
from delta_core.execution.executor import TaskFunction
from delta_core.storage.task_stores import options_of_tasks

TASK_SCHEMA: Final = "i int, task string"
RESULT_SCHEMA: Final = "i int, ok boolean, payload string"

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function for `mapInArrow`."""


def task_runner(name: str, options: Mapping[str, str]) -> BatchFunction:
    """A function from rows of `TASK_SCHEMA` to rows of `RESULT_SCHEMA`.

    Args:
        name: the name of the task function, as `function_name` returns it.
        options: storage options for the stores that tasks open. Must not contain secrets.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = resolve_function(name)
        for batch in batches:
            for index, task_json in zip(batch["i"].to_pylist(), batch["task"].to_pylist(), strict=True):
                try:
                    with options_of_tasks(options):
                        ok, payload = True, json.dumps(dict(function(json.loads(task_json))))
                except Exception as error:  # each task's outcome is returned as data
                    ok, payload = False, error_to_json(error)
                yield pa.RecordBatch.from_pydict(
                    {"i": pa.array([index], pa.int32()), "ok": [ok], "payload": [payload]}
                )

    return run


@contextmanager
def plain_errors() -> Iterator[None]:
    """A context for work in an executor: a DeltaError loses the exceptions that caused it.

    Spark puts the traceback of a failed task into its logs and errors. The message of a DeltaError contains
    no secret, but a client's exception may contain a signed URL.

    Raises:
        DeltaError: the work raised it.
    """
    try:
        yield
    except DeltaError as error:
        raise error from None


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
