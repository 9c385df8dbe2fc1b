"""Plain Spark: `df.write.parquet`, the floor under any table format."""

from __future__ import annotations

from typing import Any

from benchmarks.engines.spark_settings import session

spark: Any = None


def start() -> None:
    global spark
    spark = session()
    spark.range(1).count()


def stop() -> None:
    spark.stop()


def write(source: str, uri: str) -> int:
    spark.read.parquet(source).write.parquet(uri)
    return 0


def first_query(uri: str, column: str, value: int) -> int:
    return len(spark.read.parquet(uri).where(f"{column} = {value}").collect())
