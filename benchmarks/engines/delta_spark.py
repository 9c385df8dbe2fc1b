"""delta-spark. Settings: its defaults; jars from Maven or a folder.

`DELTAWARD_DELTA_SPARK_JARS` names a folder with the jars; without it Spark resolves the package.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.engines.spark_settings import session

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
spark: Any = None


def start() -> None:
    global spark
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    folder = os.environ.get("DELTAWARD_DELTA_SPARK_JARS")
    if folder:
        settings["spark.jars"] = ",".join(str(jar) for jar in sorted(Path(folder).glob("*.jar")))
    else:
        settings["spark.jars.packages"] = PACKAGE
    spark = session(settings)
    spark.range(1).count()


def stop() -> None:
    spark.stop()


def open_table(uri: str) -> int:
    # A snapshot is cached by the session; a fresh open is what is compared.
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return len(spark.read.format("delta").load(uri).inputFiles())


def create_for_appends(uri: str) -> int:
    spark.range(1).write.format("delta").save(uri)
    return 0


def append_rows(uri: str, count: int) -> int:
    for number in range(count):
        spark.range(number, number + 1, 1, 1).write.format("delta").mode("append").save(uri)
    return count


def compact(uri: str) -> int:
    spark.sql(f"OPTIMIZE delta.`{uri}`").collect()
    return len(spark.read.format("delta").load(uri).inputFiles())


def z_order(uri: str, columns: list[str]) -> int:
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", 100 << 20)
    # The files' statistics hold row counts alone.
    spark.conf.set("spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled", "false")
    spark.sql(f"OPTIMIZE delta.`{uri}` ZORDER BY ({', '.join(columns)})").collect()
    return len(spark.read.format("delta").load(uri).inputFiles())


def write(source: str, uri: str) -> int:
    spark.read.parquet(source).write.format("delta").save(uri)
    return 0


def merge(uri: str, source: str, on: str) -> list[int]:
    # The tables come without deletion vectors, so this is copy-on-write.
    spark.read.parquet(source).createOrReplaceTempView("merge_source")
    (row,) = spark.sql(
        f"MERGE INTO delta.`{uri}` t USING merge_source s ON {on} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).collect()
    return [row["num_updated_rows"], row["num_inserted_rows"]]


def first_query(uri: str, column: str, value: int) -> int:
    return len(spark.read.format("delta").load(uri).where(f"{column} = {value}").collect())


def enable_deletion_vectors(uri: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")


def merge_set(uri: str, source: str, on: str) -> list[int]:
    spark.read.parquet(source).createOrReplaceTempView("merge_source")
    (row,) = spark.sql(
        f"MERGE INTO delta.`{uri}` t USING merge_source s ON {on} WHEN MATCHED THEN UPDATE SET "
        "l_comment = s.l_comment, l_quantity = t.l_quantity + s.l_quantity WHEN NOT MATCHED THEN INSERT *"
    ).collect()
    return [row["num_updated_rows"], row["num_inserted_rows"]]
