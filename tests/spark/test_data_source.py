"""`format("deltaward")`: a table behind Spark's own reading and writing calls, without registration."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.maintenance.clone import apply_clone, plan_clone
from delta_core.storage.local import LocalLogStore
from tests.support.spark import collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def append(table: Path, *ids: int) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "part": [f"p{i % 2}" for i in ids]})
    write_deltalake(
        str(table),
        rows,
        mode="append",
        partition_by=["part"],
        configuration={"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    )


def rows_of(table: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(str(table)).to_pyarrow_table().to_pylist(), key=repr)


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def test_versions_predicates_and_changes(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, 1, 2, 3)
    DeltaTable(str(tmp_path)).delete("id = 2")
    append(tmp_path, 4)
    read = spark.read.format("deltaward")
    assert collected(read.load(str(tmp_path))) == rows_of(tmp_path)
    assert ids(collected(read.option("versionAsOf", 0).load(str(tmp_path)))) == [1, 2, 3]
    where = spark.read.format("deltaward").option("where", "part = 'p1' AND id > 1")
    assert ids(collected(where.load(str(tmp_path)))) == [3]
    feed = spark.read.format("deltaward").option("readChangeFeed", "true").option("startingVersion", 1)
    found = {
        (row["id"], row["_change_type"], row["_commit_version"]) for row in feed.load(str(tmp_path)).collect()
    }
    assert found == {(2, "delete", 1), (4, "insert", 2)}


def test_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, 0)
    DeltaTable(str(tmp_path)).delete()
    assert collected(spark.read.format("deltaward").load(str(tmp_path))) == []
    append(tmp_path, 1)
    filtered = spark.read.format("deltaward").option("where", "id > 1").load(str(tmp_path))
    assert filtered.count() == 0


def test_writes_are_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = spark.range(6).selectExpr("id", "concat('p', id % 2) part")
    write = rows.repartition(2).write.format("deltaward")
    write.mode("append").option("partitionBy", "part").save(str(table))
    assert (DeltaTable(str(table)).version(), ids(rows_of(table))) == (0, list(range(6)))
    assert DeltaTable(str(table)).metadata().partition_columns == ("part",)
    one = spark.range(10, 11).selectExpr("id", "'p0' part", "1.5D extra")
    for _ in range(2):
        key = {"txnAppId": "test", "txnVersion": "1", "mergeSchema": "true"}
        one.write.format("deltaward").mode("append").options(**key).save(str(table))
    assert ids(rows_of(table)) == [*range(6), 10]
    replace = rows.where("id = 0").write.format("deltaward").mode("overwrite")
    replace.option("replaceWhere", "part = 'p0'").save(str(table))
    assert ids(rows_of(table)) == [0, 1, 3, 5]
    spark.range(2).write.format("deltaward").mode("overwrite").option("overwriteSchema", "true").save(
        str(table)
    )
    assert rows_of(table) == [{"id": 0}, {"id": 1}]


def test_refused_writes_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, 1)
    before = sorted(tmp_path.rglob("*.parquet"))
    write = spark.range(3).selectExpr("id", "'p0' part", "1 extra").write.format("deltaward").mode("append")
    with pytest.raises(Exception, match="extra"):
        write.save(str(tmp_path))
    DeltaTable(str(tmp_path)).alter.add_constraint({"small": "id < 100"})
    bad = spark.range(99, 101).selectExpr("id", "'p0' part")
    with pytest.raises(Exception, match="small"):
        bad.write.format("deltaward").mode("append").save(str(tmp_path))
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert rows_of(tmp_path) == [{"id": 1, "part": "p1"}]


def test_a_stream_from_table_to_table(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for number in range(3):
        append(source, number)
    DeltaTable(str(source)).optimize.compact()

    def run() -> None:
        rows = spark.readStream.format("deltaward").option("maxFilesPerTrigger", 1).load(str(source))
        query = rows.writeStream.format("deltaward").option("checkpointLocation", str(tmp_path / "c"))
        query.trigger(availableNow=True).start(str(target)).awaitTermination()

    run()
    assert ids(rows_of(target)) == [0, 1, 2]
    append(source, 3)
    for path in (tmp_path / "c" / "commits").glob("*"):
        path.unlink()
    run()
    assert ids(rows_of(target)) == [0, 1, 2, 3]
    assert next(iter(DeltaTable(str(target)).transactions().values())).version >= 1


def test_filters_choose_files_and_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in range(2):
        rows = pa.table(
            {
                "id": pa.array([10 * number + i for i in range(3)], pa.int64()),
                "name": [f"a%{number}", f"b_{number}", None],
                "at": pa.array(
                    [dt.datetime(2026, 1, 1 + number, tzinfo=dt.UTC)] * 3, pa.timestamp("us", "UTC")
                ),
                "day": pa.array([dt.date(2026, 1, 1 + number)] * 3),
                "price": pa.array(
                    [decimal.Decimal("1.50"), decimal.Decimal("2.50"), None], pa.decimal128(9, 2)
                ),
            }
        )
        write_deltalake(str(table), rows, mode="append")
    conditions = [
        "id IN (1, 10, 11) AND id <> 11 AND name LIKE '%1'",
        "name LIKE 'a\\%%' AND NOT (name = 'a%0') AND price >= 1.5",
        "name LIKE '%\\_%' AND name <=> 'b_1' AND day = DATE'2026-01-02'",
        "name IS NULL AND id > 2 AND at >= TIMESTAMP'2026-01-02 00:00:00'",
        "name IS NOT NULL AND id % 2 = 0",
    ]

    def found() -> list[list[dict[str, Any]]]:
        read = spark.read.format("deltaward").load(str(table))
        return [collected(read.where(condition)) for condition in conditions]

    expected = found()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert found() == expected
        assert [ids(rows) for rows in expected] == [[10], [10], [11], [12], [0, 10]]
        # The file of the ids below 10 is not opened.
        for uri in DeltaTable(str(table)).file_uris("id < 10"):
            Path(uri.removeprefix("file://")).unlink()
        filtered = spark.read.format("deltaward").load(str(table)).where("id > 9 AND name LIKE 'a%'")
        assert ids(collected(filtered)) == [10]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_files_outside_of_the_table_need_allowed_roots(spark: SparkSession, tmp_path: Path) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    append(source, 1, 2)
    apply_clone(plan_clone(DeltaTable(str(source)).snapshot, LocalLogStore(clone), shallow=True))
    read = spark.read.format("deltaward")
    with pytest.raises(Exception, match="not below the table root"):
        read.load(str(clone)).collect()
    allowed = spark.read.format("deltaward").option("allowedRoots", str(source))
    assert ids(collected(allowed.load(str(clone)))) == [1, 2]
    stream = spark.readStream.format("deltaward").option("allowedRoots", f'["{source}"]').load(str(clone))
    query = stream.writeStream.format("deltaward").option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert ids(rows_of(tmp_path / "out")) == [1, 2]


def test_complete_mode_replaces_the_result(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for number in range(2):
        append(source, number, number + 2)
        rows = spark.readStream.format("deltaward").load(str(source))
        counts = rows.groupBy("part").count()
        query = counts.writeStream.format("deltaward").option("checkpointLocation", str(tmp_path / "c"))
        query = query.outputMode("complete").trigger(availableNow=True)
        query.start(str(target)).awaitTermination()
    assert rows_of(target) == [{"part": "p0", "count": 2}, {"part": "p1", "count": 2}]


def test_a_named_table_without_its_location(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, 1)
    spark.sql(f"CREATE TABLE named_source USING deltaward LOCATION '{tmp_path}'")
    try:
        with pytest.raises(Exception, match=r"spark_jobs\.table"):
            spark.table("named_source").collect()
    finally:
        spark.sql("DROP TABLE named_source")
    with pytest.raises(Exception, match="does not know the location"):
        spark.read.format("deltaward").load().collect()
