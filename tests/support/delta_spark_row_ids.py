"""Has delta-spark read the row ids of tables, in a process of its own.

Usage: `python -m tests.support.delta_spark_server row_ids OUT KEY TABLE...`.

OUT is JSON: for each TABLE its rows' `[KEY, row id, row commit version]`, sorted by KEY.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession


def main(spark: SparkSession, out: str, key: str, *tables: str) -> None:
    """Read them."""
    answers = {
        table: sorted(
            [row[0], row[1], row[2]]
            for row in spark.sql(
                f"SELECT {key}, _metadata.row_id, _metadata.row_commit_version FROM delta.`{table}`"
            ).collect()
        )
        for table in tables
    }
    Path(out).write_text(json.dumps(answers))
