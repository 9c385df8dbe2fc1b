"""Has delta-spark stream tables, in a process of its own.

Usage: `python -m tests.support.delta_spark_server streams REQUESTS OUT`.

REQUESTS is a JSON list of {"table", "options"}. OUT gets a list with the batches of each stream: for each
batch that has rows, the strings of its rows in order.
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


def _batches(spark: SparkSession, table: str, options: dict[str, Any]) -> list[list[str]]:
    found: list[list[str]] = []

    def keep(rows: DataFrame, batch_id: int) -> None:
        listed = [as_string(row.asDict()) for row in rows.collect()]
        if listed:
            found.append(sorted(listed))

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
        query.awaitTermination()
    return found


def as_string(row: dict[str, Any]) -> str:
    """A row as a string, without the time of its commit."""
    return str(sorted((name, value) for name, value in row.items() if name != "_commit_timestamp"))
