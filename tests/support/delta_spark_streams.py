"""Has delta-spark stream tables, in a process of its own.

Usage: `python -m tests.support.delta_spark_server streams REQUESTS OUT`.

REQUESTS is a JSON list of {"table", "options"}. OUT gets a list with, for each stream, its batches and the
condition of the error that ended it, or null: for each batch that has rows, the strings of its rows in order.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def main(spark: SparkSession, requests_file: str, out: str) -> None:
    """Answer every request."""
    answers = [_batches(spark, **request) for request in json.loads(Path(requests_file).read_text())]
    Path(out).write_text(json.dumps(answers))


def _batches(spark: SparkSession, table: str, options: dict[str, Any]) -> tuple[list[list[str]], str | None]:
    found: list[list[str]] = []
    problem = None

    def keep(rows: DataFrame, batch_id: int) -> None:
        listed = strings_of(rows)
        if listed:
            found.append(listed)

    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            spark.readStream.format("delta")
            .options(**options)
            .load(table)
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except Exception as error:
            problem = str(error)[:2000]
    return found, problem


def strings_of(rows: DataFrame) -> list[str]:
    """The rows of a batch as strings in order."""
    return sorted(as_string(row.asDict()) for row in rows.collect())


def as_string(row: dict[str, Any]) -> str:
    """A row as a string, without the time of its commit."""
    return str(sorted((name, value) for name, value in row.items() if name != "_commit_timestamp"))
