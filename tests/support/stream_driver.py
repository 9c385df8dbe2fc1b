"""A program with two queries: `python -m tests.support.stream_driver FOLDER run|finish`, to be killed.

One query writes counted rows to the table `bus`. The other reads `bus` as a stream and writes `copy`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spark_jobs
from spark_jobs.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONF = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g", "spark.ui.enabled": "false"}


def copy(target: str, rows: DataFrame, batch_id: int) -> None:
    spark_jobs.write(rows, target, mode="append", txn=("copy", batch_id))


def main(folder: Path, *, finish: bool) -> None:
    spark = get_session(master="local[2]", conf=CONF, app_name="streams")
    bus, target = str(folder / "bus"), str(folder / "copy")
    if not finish:
        counted = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
        spark_jobs.stream_to(
            counted.select("value"),
            bus,
            checkpoint=folder / "in",
            trigger={"processingTime": "200 milliseconds"},
        )
        while not (folder / "bus" / "_delta_log" / f"{0:020d}.json").exists():
            spark.streams.awaitAnyTermination(1)
    trigger: dict[str, Any] = {"availableNow": True} if finish else {"processingTime": "200 milliseconds"}
    reader = spark_jobs.stream(spark, bus, maxFilesPerTrigger=3).foreach_batch(partial(copy, target))
    reader.trigger(**trigger).start(folder / "out").awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), finish=sys.argv[2] == "finish")
