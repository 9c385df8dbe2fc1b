"""Reads tables with delta-spark, in a process of its own.

Usage: `python -m tests.support.delta_spark_reader REQUESTS OUT`.

REQUESTS is a JSON list of {"uri", "version"}; the rows of request *i* are written to OUT/i.parquet. Spark
resolves the jars from Maven on first use and keeps them in `.tools/ivy`; without them it fails.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
ROOT = Path(__file__).resolve().parents[2]

SETTINGS = {
    "spark.jars.packages": PACKAGE,
    "spark.jars.ivy": str(ROOT / ".tools" / "ivy"),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def session() -> SparkSession:
    """A classic session with delta-spark."""
    builder = SparkSession.builder.master("local[2]").appName("delta-spark-reader")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main(requests_file: str, out: str) -> None:
    """Answer every request."""
    spark = session()
    for index, request in enumerate(json.loads(Path(requests_file).read_text())):
        reader = spark.read.format("delta").option("versionAsOf", request["version"])
        pq.write_table(reader.load(request["uri"]).toArrow(), Path(out) / f"{index}.parquet")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
