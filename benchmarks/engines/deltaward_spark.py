"""deltaward on Spark (classic, local[2])."""

from __future__ import annotations

from typing import Any

import spark_jobs
from benchmarks.engines.spark_settings import session
from delta_core import DeltaTable
from spark_jobs.spark_executor import SparkExecutor

spark: Any = None


def start() -> None:
    """Bring the session up outside every timing."""
    global spark
    spark = session()
    spark.range(1).count()


def stop() -> None:
    """End the session."""
    spark.stop()


def write(source: str, uri: str) -> int:
    """`spark_jobs.write` of a Parquet file's rows as a new table."""
    result = spark_jobs.write(spark.read.parquet(source), uri, mode="append")
    return int(result.version_to)


def compact(uri: str) -> int:
    """Compaction with its task map on Spark."""
    table = DeltaTable(uri)
    table.optimize.compact(executor=SparkExecutor(spark))
    return len(table.file_uris())


def z_order(uri: str, columns: list[str]) -> int:
    """Z-order with its task maps on Spark."""
    table = DeltaTable(uri)
    table.optimize.z_order(columns, target_size_bytes=100 << 20, executor=SparkExecutor(spark))
    return len(table.file_uris())


def enable_deletion_vectors(uri: str) -> None:
    DeltaTable(uri).alter.set_properties({"delta.enableDeletionVectors": "true"})


def delete_rows(uri: str, predicate: str) -> int:
    """Delete rows; how many."""
    found: int = spark_jobs.delete(spark, uri, predicate).output["metrics"]["numDeletedRows"]
    return found


def update_rows(uri: str, predicate: str) -> int:
    """Give rows another comment; how many."""
    result = spark_jobs.update(spark, uri, {"l_comment": "'changed'"}, predicate)
    found: int = result.output["metrics"]["numUpdatedRows"]
    return found


def merge(uri: str, source: str, on: str) -> list[int]:
    """MERGE of a Parquet file's rows, every column; rows updated and inserted."""
    changed = (
        spark_jobs.DeltaTable.forPath(spark, uri)
        .alias("t")
        .merge(spark.read.parquet(source).alias("s"), on)
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    (counts,) = changed.collect()
    return [counts["num_updated_rows"], counts["num_inserted_rows"]]


def merge_set(uri: str, source: str, on: str) -> list[int]:
    """MERGE that sets two columns, one of them from both sides; rows updated and inserted."""
    values = {"l_comment": "s.l_comment", "l_quantity": "t.l_quantity + s.l_quantity"}
    changed = (
        spark_jobs.DeltaTable.forPath(spark, uri)
        .alias("t")
        .merge(spark.read.parquet(source).alias("s"), on)
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsertAll()
        .execute()
    )
    (counts,) = changed.collect()
    return [counts["num_updated_rows"], counts["num_inserted_rows"]]
