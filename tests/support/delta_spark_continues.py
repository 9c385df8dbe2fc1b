"""Reads tables with delta-spark, and goes on writing to them; in a process of its own.

Usage: `python -m tests.support.delta_spark_server continues TABLES OUT`. Of each folder of TABLES, which
has a column `id`, the rows with `id = 1` are written to OUT/<name>.before.parquet; then one row is added, the
rows with `id = 1` are deleted, and all rows are written to OUT/<name>.after.parquet.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def main(spark: SparkSession, tables: str, out: str) -> None:
    """Do it for each table."""
    for path in sorted(Path(tables).iterdir()):
        table = f"delta.`{path}`"
        before = spark.sql(f"SELECT * FROM {table} WHERE id = 1")
        pq.write_table(before.toArrow(), Path(out) / f"{path.name}.before.parquet")
        spark.sql(f"INSERT INTO {table} (id) VALUES (1000)")
        spark.sql(f"DELETE FROM {table} WHERE id = 1")
        pq.write_table(
            spark.sql(f"SELECT * FROM {table}").toArrow(), Path(out) / f"{path.name}.after.parquet"
        )
