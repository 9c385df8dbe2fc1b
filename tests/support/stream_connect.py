"""Streams on a Connect server: `python -m tests.support.stream_connect URL FOLDER` prints JSON."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spark_jobs
from delta_core import DeltaTable
from spark_jobs.session import get_session, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AVAILABLE_NOW = {"availableNow": True}


def copy(target: str, rows: DataFrame, batch_id: int) -> None:
    spark_jobs.write(rows, target, mode="append", txn=("copy", batch_id))


def ids(table: Path) -> list[int]:
    return sorted(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist())


def main(url: str, folder: Path) -> dict[str, Any]:
    spark = get_session(url, app_name="streams")
    found: dict[str, Any] = {"is_connect": is_connect(spark)}
    files, bus = folder / "files", folder / "bus"
    spark.range(30).repartition(2).write.parquet(str(files))
    rows = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(files))
    arguments = {"checkpoint": folder / "in", "trigger": AVAILABLE_NOW}
    spark_jobs.stream_to(rows, str(bus), **arguments).awaitTermination()
    found["bus"] = ids(bus), DeltaTable(str(bus)).version()

    stream = spark_jobs.stream(spark, str(bus), maxFilesPerTrigger=1, pinName="copy")
    stream = stream.foreach_batch(partial(copy, str(folder / "copy")))
    stream.trigger(**AVAILABLE_NOW).start(folder / "out").awaitTermination()
    found["copy"] = ids(folder / "copy")

    source = spark.readStream.format("deltaward").option("maxFilesPerTrigger", 1).load(str(bus))
    writer = source.writeStream.format("deltaward").option("checkpointLocation", str(folder / "c"))
    writer.trigger(availableNow=True).start(str(folder / "source")).awaitTermination()
    found["source"] = ids(folder / "source")

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    read = spark.read.format("deltaward").load(str(bus))
    found["filtered"] = sorted(row["id"] for row in read.where("id > 5 AND id < 8").collect())
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
