"""A program with four queries: `python -m tests.support.stream_driver FOLDER run|finish`, to be killed.

Of each way, `fast` and `source`, one query writes counted rows to the table `WAY-bus`. The other reads it as
a stream and writes `WAY-copy`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spark_jobs
from spark_jobs.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WAYS = ("fast", "source")
CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    # A few rows are read sooner than code for them is compiled.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
OFTEN = {"processingTime": "200 milliseconds"}


def copy(target: str, rows: DataFrame, batch_id: int) -> None:
    spark_jobs.write(rows, target, mode="append", txn=("copy", batch_id))


def ingest(spark: SparkSession, way: str, folder: Path) -> StreamingQuery:
    """The query that writes counted rows to the bus."""
    counted = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().select("value")
    bus, checkpoint = str(folder / f"{way}-bus"), str(folder / f"{way}-in")
    if way == "fast":
        return spark_jobs.stream_to(counted, bus, checkpoint=checkpoint, trigger=OFTEN)
    writer = counted.writeStream.format("deltaward").option("checkpointLocation", checkpoint)
    return writer.trigger(**OFTEN).start(bus)


def consume(
    spark: SparkSession, way: str, folder: Path, trigger: dict[str, Any], *, most_files: int
) -> StreamingQuery:
    """The query that copies the bus."""
    bus, target, checkpoint = (str(folder / f"{way}-{name}") for name in ("bus", "copy", "out"))
    if way == "fast":
        reader = spark_jobs.stream(spark, bus, maxFilesPerTrigger=most_files).foreach_batch(
            partial(copy, target)
        )
        return reader.trigger(**trigger).start(checkpoint)
    rows = spark.readStream.format("deltaward").option("maxFilesPerTrigger", most_files).load(bus)
    writer = rows.writeStream.format("deltaward").option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger).start(target)


def exists(table: Path) -> bool:
    return (table / "_delta_log" / f"{0:020d}.json").exists()


def main(folder: Path, *, finish: bool) -> None:
    spark = get_session(master="local[2]", conf=CONF, app_name="streams")
    if finish:
        now = {"availableNow": True}
        # A kill may come before the first commit of a bus.
        buses = [way for way in WAYS if exists(folder / f"{way}-bus")]
        for query in [consume(spark, way, folder, now, most_files=200) for way in buses]:
            query.awaitTermination()
        return
    for way in WAYS:
        ingest(spark, way, folder)
    for way in WAYS:
        while not exists(folder / f"{way}-bus"):
            spark.streams.awaitAnyTermination(1)
        consume(spark, way, folder, OFTEN, most_files=3)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), finish=sys.argv[2] == "finish")
