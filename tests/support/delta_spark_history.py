"""What delta-spark finds in a table's versions, after which it goes on with the table.

Usage: `python -m tests.support.delta_spark_server history TABLE OUT VERSION...`.

The versions go up. OUT gets `ids` (of each), `by_time` (the version that each version's own time means),
`changes` (rows of the change feed behind the first one) and `after` (the ids once it has deleted one and
added another).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def _ids(spark: SparkSession, path: str, **options: Any) -> list[int]:
    rows = spark.read.format("delta").options(**options).load(path).select("id").collect()
    return sorted(row.id for row in rows)


def main(spark: SparkSession, path: str, out: str, *numbers: str) -> None:
    """Read the versions, by number and by time; then write."""
    versions = [int(number) for number in numbers]
    history = {row.version: row.timestamp for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()}
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    by_time = {}
    for version in versions:
        if version in history:
            text = history[version].astimezone().isoformat(timespec="milliseconds")
            by_time[version] = _ids(spark, path, timestampAsOf=text)
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    found = changes.option("startingVersion", versions[0] + 1).load(path)
    rows = found.select("id", "_change_type", "_commit_version").collect()
    answer = {
        "ids": {version: _ids(spark, path, versionAsOf=version) for version in versions},
        "by_time": by_time,
        "changes": sorted([row[0], row[1], row[2]] for row in rows),
    }
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 7")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1000, 'c')")
    answer["after"] = _ids(spark, path)
    Path(out).write_text(json.dumps(answer))
