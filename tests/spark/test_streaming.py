"""Streams from and into tables on Spark: file lists through the query, rows read and written natively."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import spark_jobs
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ConfigurationError,
    ExpressionError,
    MissingDataFileError,
    SchemaMismatchError,
    StreamDataLossError,
    TableChangedError,
)
from delta_core.leases.pins import pins_in_force
from tests.support.documents import EXAMPLES, run_blocks
from tests.support.soak import SEED, rounds
from tests.support.spark import collected, rows_of
from tests.support.stream_histories import random_history, step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AVAILABLE_NOW = {"availableNow": True}


def append(table: Path, *ids: int) -> None:
    write_deltalake(str(table), pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def read_all(spark: SparkSession, table: Path, folder: Path, **options: Any) -> list[list[dict[str, Any]]]:
    """The rows of each batch that a query with this checkpoint reads now."""
    out = folder / "out"

    def keep(rows: DataFrame, batch_id: int) -> None:
        rows.coalesce(1).write.mode("overwrite").parquet(f"{out}/{batch_id:05d}")

    before = {path.name for path in out.glob("*")}
    query = (
        spark_jobs.stream(spark, str(table), **options)
        .foreach_batch(keep)
        .trigger(**AVAILABLE_NOW)
        .start(folder / "checkpoint")
    )
    query.awaitTermination()
    found = sorted(path for path in out.glob("*") if path.name not in before)
    return [collected(spark.read.parquet(str(path))) for path in found]


@pytest.mark.parametrize("case", range(rounds(usual=1, soak=10)))
def test_batches_are_those_of_follow(spark: SparkSession, tmp_path: Path, case: int) -> None:
    rng = random.Random(f"{SEED}:spark:{case}")
    table = tmp_path / "t"
    used = random_history(table, rng, steps=4, changes=True, vectors=True)
    options = {"skip_change_commits": True, "max_files": 3}
    reader = DeltaTable(str(table)).follow(**options)
    expected = [sorted(batch.to_table().to_pylist(), key=repr) for batch in reader]
    spark_options = {"skipChangeCommits": True, "maxFilesPerTrigger": 3}
    assert read_all(spark, table, tmp_path, **spark_options) == expected
    position = DeltaTable(str(table)).version() + 1
    for _ in range(2):
        used += step(table, rng, used, changes=True)
    append_more = pa.table({"id": pa.array([used], pa.int64()), "part": ["p0"]})
    write_deltalake(str(table), append_more, mode="append")
    later = DeltaTable(str(table)).follow(starting_version=position, **options)
    expected = [sorted(batch.to_table().to_pylist(), key=repr) for batch in later]
    # The checkpoint continues where the first query ended.
    assert read_all(spark, table, tmp_path, **spark_options) == expected


def test_a_change_feed(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    random_history(table, random.Random(7), steps=5, changes=True, vectors=False, feed=True)
    found = read_all(spark, table, tmp_path, readChangeFeed=True, startingVersion=0)
    expected = DeltaTable(str(table)).load_cdf(starting_version=0).read_all().to_pylist()
    assert sorted((row for rows in found for row in rows), key=repr) == sorted(expected, key=repr)


def test_columns_and_predicates(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    append(table, 1, 2, 3)
    options = {"where": "id > 1", "columns": ["ID"], "pinName": "copy"}
    assert read_all(spark, table, tmp_path, **options) == [[{"id": 2}, {"id": 3}]]
    (pin,) = pins_in_force(DeltaTable(str(table)).store, store_now_ms=0)
    assert (pin.holder, pin.version) == ("the stream copy", 0)


def test_wrong_arguments_of_a_source(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, 1)
    with pytest.raises(ConfigurationError, match="no option 'maxFiles'"):
        spark_jobs.stream(spark, str(tmp_path), maxFiles=1)
    with pytest.raises(ConfigurationError, match="ignoreDeletes"):
        spark_jobs.stream(spark, str(tmp_path), ignoreDeletes="maybe")
    with pytest.raises(ExpressionError):
        spark_jobs.stream(spark, str(tmp_path), where="nothing = 1")
    with pytest.raises(SchemaMismatchError):
        spark_jobs.stream(spark, str(tmp_path), columns=["nothing"])
    with pytest.raises(ConfigurationError, match="foreach_batch"):
        spark_jobs.stream(spark, str(tmp_path)).start(tmp_path / "checkpoint")


def test_errors_of_queries_have_their_types(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    append(table, 1)
    append(table, 2)
    DeltaTable(str(table)).delete("id = 1")
    stream = spark_jobs.stream(spark, str(table), startingVersion=0).foreach_batch(lambda rows, _: None)
    query = stream.trigger(**AVAILABLE_NOW).start(tmp_path / "c1")
    with pytest.raises(Exception, match=r"deletes rows|changes rows"):
        query.awaitTermination()
    error = spark_jobs.stream_error(query)
    assert isinstance(error, TableChangedError)
    assert "ignore_deletes" in str(error)
    DeltaTable(str(table)).create_checkpoint()
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    rows = spark.readStream.format("deltaward").option("startingVersion", 0).load(str(table))
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c2")).start()
    with pytest.raises(Exception, match="cannot read version 0"):
        query.awaitTermination()
    assert isinstance(spark_jobs.stream_error(query), StreamDataLossError)

    def refused(rows: DataFrame, batch_id: int) -> None:
        spark_jobs.write(rows.selectExpr("'x' AS id"), str(table), mode="append")

    query = spark_jobs.stream(spark, str(table)).foreach_batch(refused).start(tmp_path / "c3")
    with pytest.raises(Exception, match="id"):
        query.awaitTermination()
    assert isinstance(spark_jobs.stream_error(query), SchemaMismatchError)
    stream = spark_jobs.stream(spark, str(table)).foreach_batch(lambda rows, _: None)
    for path in table.glob("*.parquet"):
        path.unlink()
    query = stream.trigger(**AVAILABLE_NOW).start(tmp_path / "c4")
    with pytest.raises(Exception, match="data file"):
        query.awaitTermination()
    assert isinstance(spark_jobs.stream_error(query), MissingDataFileError)


def test_a_table_as_a_bus(spark: SparkSession, tmp_path: Path) -> None:
    """From table to table, both exactly once: a repeated batch adds nothing."""
    source, target = tmp_path / "source", tmp_path / "target"
    for number in range(3):
        append(source, number)
    rows = spark.readStream.schema("id long").parquet(str(source / "*.parquet"))
    arguments = {"checkpoint": tmp_path / "checkpoint", "trigger": AVAILABLE_NOW}
    spark_jobs.stream_to(rows, str(target), **arguments).awaitTermination()
    assert rows_of(target) == [{"id": 0}, {"id": 1}, {"id": 2}]
    # Spark has no record that the last batch is done, so the batch is repeated.
    for path in (tmp_path / "checkpoint" / "commits").glob("*"):
        path.unlink()
    append(source, 3)
    spark_jobs.stream_to(rows, str(target), **arguments).awaitTermination()
    assert rows_of(target) == [{"id": number} for number in range(4)]
    (app_id,) = DeltaTable(str(target)).transactions()
    assert app_id in (tmp_path / "checkpoint" / "metadata").read_text()


def test_complete_mode_replaces_the_result(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    append(source, 1, 2)
    rows = spark.readStream.schema("id long").parquet(str(source / "*.parquet"))
    counts = rows.groupBy((rows["id"] % 2).alias("odd")).count()
    arguments = {"checkpoint": tmp_path / "checkpoint", "trigger": AVAILABLE_NOW, "mode": "complete"}
    spark_jobs.stream_to(counts, str(target), **arguments).awaitTermination()
    append(source, 3)
    spark_jobs.stream_to(counts, str(target), **arguments).awaitTermination()
    assert rows_of(target) == [{"odd": 0, "count": 1}, {"odd": 1, "count": 2}]


def test_wrong_arguments_of_a_sink(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load()
    with pytest.raises(ConfigurationError, match="mode of a stream"):
        spark_jobs.stream_to(rows, str(tmp_path), checkpoint=tmp_path, mode="update")
    with pytest.raises(ConfigurationError, match="not a streaming"):
        spark_jobs.stream_to(spark.range(1), str(tmp_path), checkpoint=tmp_path)


def test_the_example_of_a_bus(spark: SparkSession, tmp_path: Path) -> None:
    seen = run_blocks(f"{EXAMPLES}/table_bus.md", tmp_path, tag="spark", spark=spark)
    users = seen["users"]
    assert users == set(range(DeltaTable(seen["BUS"]).count()))
    assert {row["user"] for row in rows_of(seen["DAILY"])} == {user for user in users if user % 2 == 0}
