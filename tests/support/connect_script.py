"""Reads, writes and maps tasks over Spark Connect; a process can hold classic or Connect, not both.

    python -m tests.support.connect_script sc://127.0.0.1:PORT FOLDER

Prints one JSON object with what it found.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spark_jobs
import spark_jobs.names
from delta_core import DeltaTable
from delta_core.errors import ConstraintViolationError, ObjectNotFoundError
from spark_jobs.session import is_connect
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.writer.footers import describe_file
from tests.support.hostile_jobs import loads, run_all
from tests.support.hostile_sessions import set_so, together
from tests.support.read_tables import TABLES, table_with
from tests.support.spark_reads import assert_changes_alike, assert_reads_alike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(remote: str, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    spark = spark_jobs.get_session(remote)
    found["is_connect"] = is_connect(spark)
    table = str(folder / "table")
    values = ["plain", "a b", "x/y=%:", "ü", "[1]", None]
    frame = spark.createDataFrame(list(enumerate(values)), "id int, p string")
    moments = frame.selectExpr("*", "timestamp_micros(id) as t")
    with ThreadPoolExecutor(2) as pool:
        halves = [moments.where("id < 3"), moments.where("id >= 3")]
        list(pool.map(lambda half: spark_jobs.write(half, table, mode="append", partition_by=["p"]), halves))
    rows = spark_jobs.read(spark, table).select("id", "p").collect()
    found["rows"] = sorted(([row["id"], row["p"]] for row in rows), key=repr)
    found["pruned"] = [row["id"] for row in spark_jobs.read(spark, table, where="p = 'a b'").collect()]
    setting = "spark.sql.parquet.outputTimestampType"
    found["setting"] = spark.conf.get(setting)
    try:
        spark_jobs.write(
            frame.selectExpr("-id as id", "p"), table, mode="append", constraints=[("c", "id >= 0")]
        )
    except ConstraintViolationError as error:
        found["violation"] = error.cause
    spark_jobs.write(
        spark.sql("select 77 as id, 'plain' as p"), table, mode="overwrite", replace_where="p = 'plain'"
    )
    found["replaced"] = sorted(row["id"] for row in spark_jobs.read(spark, table).collect())
    tasks = [{"n": n} for n in range(3)]
    found["tasks"] = dict(SparkExecutor(spark).map(dict, tasks)) == dict(enumerate(tasks))
    try:
        list(SparkExecutor(spark).map(describe_file, [{"table_uri": table, "path": "gone.parquet"}]))
    except ObjectNotFoundError as error:
        found["task_error"] = error.code
    news = spark.sql("select 77 as id, 'moved' as p union all select 90, 'new'").alias("s")
    (
        spark_jobs.DeltaTable.forPath(spark, table)
        .alias("t")
        .merge(news, "t.id = s.id")
        .whenMatchedUpdate(set={"p": "s.p"})
        .whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"})
        .whenNotMatchedBySourceDelete("id = 1")
        .execute()
    )
    merged = spark_jobs.read(spark, table).select("id", "p").collect()
    found["merged"] = sorted([row["id"], row["p"]] for row in merged)
    found["named"] = _named(spark, folder)
    with set_so(spark, together("no ANSI in Juneau", "the old calendar")):
        found["hostile"] = run_all(spark, folder / "hostile")
        loads(spark, folder / "hostile")
    for name in ("vectors", "mapping-id-changes", "widening", "variants"):
        table_with(name, folder / name)
        assert_reads_alike(spark, folder / name, versions=[1, DeltaTable(folder / name).version()])
        if TABLES[name].records_changes:
            assert_changes_alike(spark, folder / name)
    found["files"] = spark_jobs.files(spark, table).count()
    found["empty"] = spark_jobs.read(spark, table, where="id > 1000").count()
    spark.stop()
    return found


def _named(spark: SparkSession, folder: Path) -> list[Any]:
    """A table by its name, and what delta-spark's calls answer; each answer is a value of JSON."""
    uri = str(folder / "named table")
    builder = spark_jobs.DeltaTable.create(spark).tableName("connect_named").location(uri)
    table = builder.addColumn("id", "bigint", nullable=False).addColumn("s", "string", comment="c").execute()
    try:
        spark_jobs.write(spark.sql("select id, 'a' s from range(4)"), uri, mode="append")
        table.update("id = 1", {"s": "'b'"})
        table.delete("id = 2")
        source = spark.sql("select 3L id, 'c' s").alias("s")
        merged = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().execute().collect()
        rows = spark_jobs.table(spark, "connect_named").collect()
        return [
            sorted([row["id"], row["s"]] for row in rows),
            merged[0]["num_updated_rows"],
            [field.nullable for field in table.toDF().schema.fields],
            spark_jobs.DeltaTable.forName(spark, "connect_named").history().count(),
            table.optimize().executeCompaction().count(),
            table.vacuum().count(),
            table.restoreToVersion(1).first()["num_restored_files"] > 0,
        ]
    finally:
        spark_jobs.names.unregister(spark, "connect_named")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
