"""Has delta-spark change a table and tell its history, in a process of its own.

Usage: `python -m tests.support.delta_spark_server statements TABLE OUT STATEMENT...`.

`{t}` in a STATEMENT is the table. OUT is JSON: the times of DESCRIBE HISTORY by version, in epoch
milliseconds, and for each of these times the version that time travel finds at it.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession


def main(spark: SparkSession, table: str, out: str, *statements: str) -> None:
    """Run the statements, then ask."""
    for statement in statements:
        spark.sql(statement.format(t=f"delta.`{table}`"))
    rows = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").selectExpr(
        "version", "unix_millis(timestamp) AS ms"
    )
    times = {row["version"]: row["ms"] for row in rows.collect()}
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table)
    found = {}
    for version, time_ms in times.items():
        at = spark._jvm.java.sql.Timestamp(time_ms)
        none = spark._jvm.scala.Option.empty()
        found[version] = log.history().getActiveCommitAtTime(at, none, False, True, True).version()
    Path(out).write_text(json.dumps({"times": times, "found": found}))
