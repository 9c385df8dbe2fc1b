"""What Spark's errors say once they are ours."""

from __future__ import annotations

import pytest

from delta_core.errors import JobFailedError
from spark_jobs.failures import as_delta_error

OF_A_CALL = """An error occurred while calling o300.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed: \
org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///data/in/a.csv.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:885)
Caused by: org.apache.spark.SparkRuntimeException: [MALFORMED_RECORD] Malformed records are detected.
\tat org.apache.spark.sql.Something
Caused by: com.univocity.parsers.common.TextParsingException: Unescaped quote character '"' inside a value
\tat com.univocity.parsers.csv.CsvParser.handleValueSkipping(CsvParser.java:241)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            OF_A_CALL,
            "TextParsingException: Unescaped quote character '\"' inside a value (file:///data/in/a.csv)",
        ),
        (
            "Caused by: a.b.Nothing\nCaused by: java.io.IOException: No space left on device",
            "IOException: No space",
        ),
        ("[DIVIDE_BY_ZERO] Division by zero.\nmore", "RuntimeError: [DIVIDE_BY_ZERO] Division by zero."),
        ("", "RuntimeError: RuntimeError"),
    ],
    ids=["a file", "a disk", "plain", "no words"],
)
def test_the_innermost_cause_and_its_file_are_named(text: str, cause: str) -> None:
    error = as_delta_error(RuntimeError(text), doing="writing")
    assert isinstance(error, JobFailedError)
    assert error.cause.startswith(cause)
    assert "An error occurred while calling" not in str(error)
