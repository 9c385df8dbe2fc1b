"""How Spark reaches a table: the decision, and reading and writing through Arrow, here on a local disk."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

import spark_jobs
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ConfigurationError,
    ConstraintViolationError,
    MissingDataFileError,
    StorageError,
)
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.storage.open import open_store
from spark_jobs.engine_io import executor_options, table_reach
from spark_jobs.reader import arrow_scan
from tests.support.spark import collected, files_below, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECRETS = {"AWS_SECRET_ACCESS_KEY": "canary", "account_key": "canary", "aws_session_token": "canary"}
KINDS = (
    "id bigint, part string, price decimal(12,2), at timestamp, local timestamp_ntz, day date, x double, "
    "tags array<string>, home struct<town: string, zip: int>, notes map<string, string>"
)


def frame(spark: SparkSession, first: int, last: int, name: str = "a") -> DataFrame:
    rows = [
        (
            i,
            None if i % 3 == 0 else f"ä {i % 3}/=",
            Decimal(i).scaleb(-2),
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i),
            dt.datetime(2024, 1, 1) + dt.timedelta(hours=i),
            dt.date(2024, 1, 1) + dt.timedelta(days=i),
            float("nan") if i == 1 else i / 4,
            [name, None],
            {"town": name, "zip": i},
            {"k": name},
        )
        for i in range(first, last)
    ]
    return spark.createDataFrame(rows, KINDS)


@pytest.mark.parametrize(
    ("uri", "way", "root"),
    [
        ("/data/a b", "native", "file:///data/a b"),
        ("hdfs://namenode:8020/data/a%20b", "native", "hdfs://namenode:8020/data/a b"),
        ("s3://bucket/t", "arrow", "s3://bucket/t"),
        ("gs://bucket/t", "arrow", "gs://bucket/t"),
        ("abfss://c@account.dfs.core.windows.net/t", "arrow", "abfss://c@account.dfs.core.windows.net/t"),
    ],
)
def test_native_where_spark_has_the_connector(spark: SparkSession, uri: str, way: str, root: str) -> None:
    reach = table_reach(spark, open_store(uri))
    assert (reach.engine_io, reach.root_of(reach.store)) == (EngineIO(way), root)


def test_native_access_without_a_connector_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match="cannot read or write s3://bucket/t itself"):
        table_reach(spark, open_store("s3://bucket/t"), engine_io="native")
    with pytest.raises(ConfigurationError, match="engine_io 'jar' does not exist"):
        spark_jobs.read(spark, "/nowhere", engine_io="jar")


def test_executors_get_options_without_secrets() -> None:
    plain = {"AWS_REGION": "eu-west-1", "profile": "etl", "allow_http": "true"}
    assert executor_options({**plain, **SECRETS, "of_another_store": "canary"}) == plain


@pytest.mark.slow
def test_rows_of_every_type_go_out_and_come_back(spark: SparkSession, tmp_path: Path) -> None:
    native, arrow = str(tmp_path / "native"), str(tmp_path / "arrow")
    for uri, way in ((native, "native"), (arrow, "arrow")):
        rows = frame(spark, 0, 40)
        result = spark_jobs.write(rows, uri, mode="append", partition_by=["part"], engine_io=way)
        assert result.output == {"engine_io": way}
        source = frame(spark, 35, 45, "new").alias("s")
        table = spark_jobs.DeltaTable.forPath(spark, uri, engine_io=way).alias("t")
        merge = table.merge(source, "t.id = s.id AND t.price > 0").whenMatchedDelete("s.id = 36")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        merged = spark_jobs.last_result(uri)
        assert merged is not None
        assert merged.output["engine_io"] == way
        replaced = frame(spark, 100, 101)
        spark_jobs.write(replaced, uri, mode="overwrite", replace_where="id = 0 OR id >= 100", engine_io=way)
    expected = rows_of(native)
    assert len(expected) == 44
    assert repr(rows_of(arrow)) == repr(expected)
    for way in ("native", "arrow"):
        found = spark_jobs.read(spark, arrow, engine_io=way)
        assert repr(collected(found)) == repr(expected)
    orphans = DeltaTable(arrow).vacuum(retention_hours=0, enforce_retention=False, force=True, dry_run=True)
    written = [path for path in files_below(tmp_path / "arrow") if path.endswith(".parquet")]
    assert len(orphans) == len(written) - len(DeltaTable(arrow).file_uris())


def test_columns_and_predicates_reach_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark_jobs.write(frame(spark, 0, 30), uri, mode="append", engine_io="arrow")
    found = spark_jobs.read(spark, uri, columns=["day", "id"], where="id >= 28", engine_io="arrow")
    assert found.columns == ["day", "id"]
    assert sorted(row["id"] for row in found.collect()) == [28, 29]
    assert spark_jobs.read(spark, uri, where="id > 99", engine_io="arrow").count() == 0


def test_statistics_are_those_of_delta_core(spark: SparkSession, tmp_path: Path) -> None:
    uri, again = str(tmp_path / "t"), str(tmp_path / "again")
    spark_jobs.write(frame(spark, 0, 9).coalesce(1), uri, mode="append", engine_io="arrow")
    write_deltalake(again, DeltaTable(uri).to_pyarrow_table())
    by_spark, by_core = (
        DeltaTable(path).snapshot.files.to_table(["stats"])["stats"].to_pylist() for path in (uri, again)
    )
    assert by_spark == by_core


@pytest.mark.parametrize("feature", ["deletion vectors", "column mapping", "type widening"])
def test_tables_of_every_reader_feature_are_read(spark: SparkSession, tmp_path: Path, feature: str) -> None:
    uri = str(tmp_path / "t")
    configuration = {
        "deletion vectors": {"delta.enableDeletionVectors": "true"},
        "column mapping": {"delta.columnMapping.mode": "id"},
        "type widening": {"delta.enableTypeWidening": "true"},
    }[feature]
    rows = {"id": pa.array(range(50), pa.int32()), "part": ["a b"] * 50, "x": [0.5] * 50}
    write_deltalake(uri, pa.table(rows), partition_by=["part"], configuration=configuration)
    table = DeltaTable(uri)
    if feature == "deletion vectors":
        table.delete("id % 7 = 3")
    elif feature == "column mapping":
        table.alter.rename_column("x", "y")
    else:
        table.alter.change_type("id", pa.int64())
    expected = sorted(DeltaTable(uri).to_pyarrow_table().to_pylist(), key=repr)
    assert collected(spark_jobs.read(spark, uri, engine_io="arrow")) == expected
    few = spark_jobs.read(spark, uri, engine_io="arrow", columns=["id"], where="id >= 40 AND part = 'a b'")
    assert sorted(row["id"] for row in few.collect()) == sorted(
        row["id"] for row in expected if row["id"] >= 40
    )


def test_a_violation_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark_jobs.write(frame(spark, 0, 3), uri, mode="append", engine_io="arrow")
    before = files_below(tmp_path / "t")
    with pytest.raises(ConstraintViolationError, match="small"):
        spark_jobs.write(
            frame(spark, 0, 40), uri, mode="append", constraints=[("small", "id < 30")], engine_io="arrow"
        )
    assert files_below(tmp_path / "t") == before
    assert PeerTable(uri).version() == 0


@pytest.mark.slow
def test_an_error_in_an_executor_is_the_stores_own(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file lies where the write needs a directory, which only the executors find out."""
    uri = tmp_path / "t"
    spark_jobs.write(frame(spark, 0, 3), str(uri), mode="append", engine_io="arrow")
    prefix = "0c5f3a6e-0000-4000-8000-000000000000"
    (uri / prefix).write_text("in the way")
    monkeypatch.setattr("spark_jobs.writer.staging.uuid.uuid4", lambda: prefix)
    with pytest.raises(StorageError, match=prefix):
        spark_jobs.write(frame(spark, 0, 3), str(uri), mode="append", engine_io="arrow")
    assert PeerTable(str(uri)).version() == 0


def test_a_missing_file_is_named_without_the_clients_exception(spark: SparkSession, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    spark_jobs.write(frame(spark, 0, 3).coalesce(1), str(uri), mode="append", engine_io="arrow")
    (gone,) = uri.rglob("*.parquet")
    found = spark_jobs.read(spark, str(uri), engine_io="arrow")
    gone.unlink()
    with pytest.raises(Exception, match=f"The data file .*{gone.name} is missing") as failed:
        found.collect()
    assert "FileNotFoundError" not in str(failed.value)


@pytest.mark.slow
def test_an_error_of_a_reading_task_keeps_its_kind(spark: SparkSession, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    spark_jobs.write(frame(spark, 0, 3).coalesce(1), str(uri), mode="append", engine_io="arrow")
    table = spark_jobs.DeltaTable.forPath(spark, str(uri), engine_io="arrow").alias("t")
    (gone,) = uri.rglob("*.parquet")
    gone.unlink()
    merge = table.merge(frame(spark, 0, 3).alias("s"), "t.id = s.id").whenMatchedUpdateAll()
    with pytest.raises(MissingDataFileError, match=gone.name) as failed:
        merge.execute()
    assert failed.value.fix.startswith("Restore the file")


@pytest.mark.slow
def test_a_large_file_is_read_by_several_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": range(1000)}), configuration={"delta.enableDeletionVectors": "true"})
    (path,) = tmp_path.rglob("*.parquet")
    pq.write_table(pq.read_table(path), path, row_group_size=100)
    DeltaTable(uri).delete("id % 250 = 3")
    monkeypatch.setattr(arrow_scan, "OPEN_BYTES", 0)
    monkeypatch.setattr(arrow_scan, "TASK_BYTES", path.stat().st_size // 3)
    found = spark_jobs.read(spark, uri, engine_io="arrow", where="id < 900")
    assert found.selectExpr("spark_partition_id() p").distinct().count() > 2
    assert sorted(row["id"] for row in found.collect()) == [i for i in range(900) if i % 250 != 3]
