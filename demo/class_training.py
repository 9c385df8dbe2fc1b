"""A typical workload of the demonstration and the tests, so that the archive contains its classes.

`python -m demo.class_training FOLDER` runs one Spark that is also a Connect server, and then ends its JVM.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from demo.processes import LOOPBACK, free_port


def work(spark: SparkSession, folder: Path) -> None:
    """Read CSV, write and read Parquet, join, group, and transfer rows through Arrow."""
    from pyspark.sql import functions as fn

    text = folder / "rows.csv"
    text.write_text("id,day,name\n" + "".join(f"{n},2026-01-{n % 9 + 1:02},n{n}\n" for n in range(100)))
    rows = spark.read.options(header=True, mode="FAILFAST").csv(str(text))
    typed = rows.select(fn.col("id").try_cast("long").alias("id"), fn.col("day").cast("date"), "name")
    files = str(folder / "files")
    typed.write.partitionBy("day").mode("overwrite").parquet(files)
    again = spark.read.parquet(files)
    counts = again.groupBy("day").agg(fn.count("*").alias("n"), fn.max("name"))
    again.join(fn.broadcast(counts), "day").where("n > 1 and id between 1 and 50").orderBy("id").collect()
    again.mapInArrow(lambda batches: batches, again.schema).count()
    spark.createDataFrame([(1, "a")], "id long, name string").toPandas()


def main(folder: Path) -> None:
    """Run the workload in a classic session in this process, and in a Connect client in another process."""
    from pyspark import SparkContext

    from spark_jobs.session import get_session

    port = free_port()
    spark = get_session(
        master="local[1]",
        conf={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": LOOPBACK,
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        },
    )
    work(spark, folder)
    subprocess.run(
        [sys.executable, "-m", "demo.class_training", str(folder / "client"), f"sc://{LOOPBACK}:{port}"],
        check=False,
    )
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    # The JVM ends when its standard input is closed, and then writes the archive.
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def client(folder: Path, remote: str) -> None:
    """Run the workload through Spark Connect."""
    from spark_jobs.session import get_session

    folder.mkdir()
    spark = get_session(remote)
    work(spark, folder)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        client(Path(sys.argv[1]), sys.argv[2])
    else:
        main(Path(sys.argv[1]))
