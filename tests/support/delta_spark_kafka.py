"""Runs the Kafka block of the example of a bus, in the process that has Kafka's jars.

Usage: `python -m tests.support.delta_spark_server kafka BROKER FOLDER`.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.documents import EXAMPLES, run_blocks


def main(spark: SparkSession, broker: str, folder: str) -> None:
    """Run the block with the topics of a broker."""
    run_blocks(f"{EXAMPLES}/table_bus.md", Path(folder), tag="kafka", spark=spark, broker=broker)
