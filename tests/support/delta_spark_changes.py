"""Has delta-spark change tables and tell their changes, in a process of its own.

Usage: `python -m tests.support.delta_spark_server changes REQUESTS OUT`.

REQUESTS is a JSON list of {"table", "settings", "statements", "copy_after", "copy_to", "changes_from"}: `{t}`
in a statement is the table, which is copied to COPY_TO after so many statements; the rows of
`table_changes` from a version on are written to OUT/i.parquet of request *i*, unless that is null.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def main(spark: SparkSession, requests_file: str, out: str) -> None:
    """Answer every request."""
    for index, request in enumerate(json.loads(Path(requests_file).read_text())):
        for key, value in request.get("settings", {}).items():
            spark.conf.set(key, value)
        table = f"delta.`{request['table']}`"
        for done, statement in enumerate(request.get("statements", []), start=1):
            spark.sql(statement.format(t=table))
            if done == request.get("copy_after"):
                shutil.copytree(request["table"], request["copy_to"])
        first = request.get("changes_from")
        if first is not None:
            reader = spark.read.format("delta").option("readChangeFeed", "true")
            changes = reader.option("startingVersion", first).load(request["table"])
            pq.write_table(changes.drop("_commit_timestamp").toArrow(), Path(out) / f"{index}.parquet")
