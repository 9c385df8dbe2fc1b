"""Exceptions of Spark as errors of ours."""

from __future__ import annotations

import pytest

from delta_core.errors import DeltaError, JobFailedError, MissingDataFileError
from spark_jobs.failures import as_delta_error

TRACEBACK = """An exception was thrown from the Python worker. [PYTHON_EXCEPTION]
Traceback (most recent call last):
  File "worker.py", line 1, in process
    yield from reader.read()
{error}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
"""


def test_an_error_of_a_worker_keeps_its_kind_and_parts() -> None:
    missing = MissingDataFileError(
        "The data file a: b.parquet is missing.", cause="The store does not have it.", fix="Look."
    )
    string = TRACEBACK.format(error=f"delta_core.errors.storage.MissingDataFileError: {missing}")
    found = as_delta_error(RuntimeError(string), doing="reading")
    assert isinstance(found, MissingDataFileError)
    assert (found.problem, found.cause, found.fix) == (missing.problem, missing.cause, missing.fix)


@pytest.mark.parametrize("error", ["ValueError: x", "delta_core.errors.base.escape_control_characters: x"])
def test_other_errors_of_a_worker_fail_the_job(error: str) -> None:
    found: DeltaError = as_delta_error(RuntimeError(TRACEBACK.format(error=error)), doing="reading")
    assert type(found) is JobFailedError
