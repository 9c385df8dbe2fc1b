"""Reads tables with delta-spark, and begins its sessions.

Usage: `python -m tests.support.delta_spark_server reader REQUESTS OUT`.

REQUESTS is a JSON list of {"uri", "version"}; the rows of request *i* are written to OUT/i.parquet. Spark
resolves the jars from Maven on first use and keeps them in `.tools/ivy`; without them it fails. To fetch them
and read nothing: `python -m tests.support.delta_spark_reader`.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
ROOT = Path(__file__).resolve().parents[2]

SETTINGS = {
    "spark.jars.packages": f"{PACKAGE},{KAFKA}",
    "spark.jars.ivy": str(ROOT / ".tools" / "ivy"),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
    # The one that it has for local files without asking starts four processes for each commit.
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
}

SMALL_QUERIES = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.debug.maxToStringFields": "1000",
    # VACUUM would list a folder of ten files in ten thousand tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
"""For hundreds of small queries: to generate code for each, and to plan it anew, costs more than it saves."""


@contextmanager
def jars_to_ourselves() -> Iterator[None]:
    """Holds the jars' folder: two sessions that fetch into it at once make each other's downloads fail."""
    lock = ROOT / ".tools" / "ivy.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def session(threads: int = 2) -> SparkSession:
    """A classic session with delta-spark."""
    builder = SparkSession.builder.master(f"local[{threads}]").appName("delta-spark-reader")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    with jars_to_ourselves():
        return builder.getOrCreate()


def main(spark: SparkSession, requests_file: str, out: str) -> None:
    """Answer every request."""
    for index, request in enumerate(json.loads(Path(requests_file).read_text())):
        reader = spark.read.format("delta").option("versionAsOf", request["version"])
        pq.write_table(reader.load(request["uri"]).toArrow(), Path(out) / f"{index}.parquet")


if __name__ == "__main__":
    session().stop()
