"""What is written is what is read, for every type, by us and by another reader."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import spark_jobs
from delta_core.errors import VersionNotFoundError
from delta_core.jobs.job_result import JobStatus
from tests.support.spark import collected, files_below, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = dt.UTC
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("byte", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("decimal", pa.decimal128(20, 4)),
        ("small_decimal", pa.decimal128(5, 2)),
        ("string", pa.string()),
        ("binary", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("list", pa.list_(pa.int32())),
        ("struct", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("map", pa.map_(pa.string(), pa.int64())),
    ]
)
FULL_ROW: dict[str, Any] = {
    "id": 1,
    "byte": -128,
    "short": 32767,
    "int": -(2**31),
    "float": 1.5,
    "double": -0.1,
    "decimal": Decimal("1234567890123456.7891"),
    "small_decimal": Decimal("-999.99"),
    "string": "ü 日本 'x' \"y\" \\ \n",
    "binary": b"\x00\xff",
    "flag": True,
    "day": dt.date(1900, 1, 1),
    "moment": dt.datetime(1883, 11, 18, 12, 0, 0, 123456, tzinfo=UTC),
    "list": [1, None, 3],
    "struct": {"a": None, "b": "x"},
    "map": [("k", 1), ("l", None)],
}
NULL_ROW: dict[str, Any] = dict.fromkeys(SCHEMA.names) | {"id": 2}
EXTREME_ROW: dict[str, Any] = NULL_ROW | {
    "id": 3,
    "float": float("nan"),
    "double": float("-inf"),
    "day": dt.date(9999, 12, 31),
    "moment": dt.datetime(2262, 4, 12, 0, 0, 0, 1, tzinfo=UTC),
    "string": "",
    "list": [],
    "struct": {"a": None, "b": None},
    "map": [],
}
ROWS = pa.Table.from_pylist([FULL_ROW, NULL_ROW, EXTREME_ROW], schema=SCHEMA)


def same(left: pa.Table, right: pa.Table) -> bool:
    return sorted(map(repr, left.to_pylist())) == sorted(map(repr, right.to_pylist()))


def dt_string(epoch_ms: int) -> str:
    return dt.datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds")


def test_every_type_survives_writing_and_reading(spark: SparkSession, tmp_path: Path) -> None:
    result = spark_jobs.write(spark.createDataFrame(ROWS), str(tmp_path), mode="append")
    assert (result.status, result.version_from, result.version_to) == (JobStatus.SUCCEEDED, None, 0)
    assert result.metrics.rows == 3
    frame = spark_jobs.read(spark, str(tmp_path))
    assert frame.columns == SCHEMA.names
    assert same(frame.toArrow(), ROWS)
    assert same(DeltaTable(str(tmp_path)).to_pyarrow_table().select(SCHEMA.names), ROWS)


def test_timestamps_are_microseconds_with_statistics(spark: SparkSession, tmp_path: Path) -> None:
    spark_jobs.write(spark.createDataFrame(ROWS).coalesce(1), str(tmp_path), mode="append")
    [file] = [
        p for p in files_below(tmp_path) if p.endswith(".parquet") and pq.read_metadata(tmp_path / p).num_rows
    ]
    column = pq.ParquetFile(tmp_path / file).schema_arrow.field("moment")
    assert column.type == pa.timestamp("us", "UTC")
    stats = DeltaTable(str(tmp_path)).get_add_actions(flatten=True)
    text = str(pa.table(stats).to_pylist())
    assert "min.moment" in text
    assert "1883, 11, 18" in text


@pytest.mark.parametrize("count", [0, 1])
def test_an_empty_frame_makes_a_table_with_its_schema(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    result = spark_jobs.write(spark.createDataFrame(ROWS.slice(0, count)), str(tmp_path), mode="append")
    assert result.metrics.rows == count
    assert result.metrics.files_added == count
    assert len([p for p in files_below(tmp_path) if p.endswith(".parquet")]) == count
    frame = spark_jobs.read(spark, str(tmp_path))
    assert frame.columns == SCHEMA.names
    assert frame.count() == count


def test_only_data_files_are_left_in_the_jobs_own_directory(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        spark_jobs.write(spark.range(10), str(tmp_path), mode="append")
    left = files_below(tmp_path)
    folders = {path for path in left if (tmp_path / path).is_dir()}
    assert len(folders) == 2
    assert all(path.endswith(".parquet") for path in left - folders)


def test_reads_what_another_writer_wrote(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), ROWS)
    write_deltalake(str(tmp_path), ROWS.slice(0, 1), mode="append")
    assert spark_jobs.read(spark, str(tmp_path)).count() == 4
    assert same(spark_jobs.read(spark, str(tmp_path), version=0).toArrow(), ROWS)


def test_columns_and_where_select_and_filter(spark: SparkSession, tmp_path: Path) -> None:
    spark_jobs.write(spark.createDataFrame(ROWS), str(tmp_path), mode="append")
    frame = spark_jobs.read(
        spark, str(tmp_path), columns=["STRING", "id"], where="id >= 2 and string is not null"
    )
    assert frame.columns == ["string", "id"]
    assert collected(frame) == [{"string": "", "id": 3}]
    nothing = spark_jobs.read(spark, str(tmp_path), where="id > 100")
    assert nothing.columns == SCHEMA.names
    assert nothing.count() == 0


def test_a_version_and_a_timestamp_are_found(spark: SparkSession, tmp_path: Path) -> None:
    for value in range(3):
        spark_jobs.write(spark.range(value, value + 1), str(tmp_path), mode="append")
    assert spark_jobs.read(spark, str(tmp_path), version=1).count() == 2
    first_ms = (tmp_path / "_delta_log" / f"{0:020}.json").stat().st_mtime_ns // 1_000_000
    for moment in (first_ms, dt.datetime.fromtimestamp(first_ms / 1000, UTC), dt_string(first_ms)):
        assert spark_jobs.read(spark, str(tmp_path), timestamp=moment).count() == 1
    with pytest.raises(VersionNotFoundError):
        spark_jobs.read(spark, str(tmp_path), timestamp="2001-02-03")
    assert rows_of(tmp_path, version=0) == [{"id": 0}]


def test_a_column_added_later_is_null_in_older_files(spark: SparkSession, tmp_path: Path) -> None:
    spark_jobs.write(spark.range(2), str(tmp_path), mode="append")
    more = spark.range(2, 3).selectExpr("id", "named_struct('x', 1, 'y', 'a') as s")
    spark_jobs.write(more, str(tmp_path), mode="append", merge_schema=True)
    assert collected(spark_jobs.read(spark, str(tmp_path))) == [
        {"id": 0, "s": None},
        {"id": 1, "s": None},
        {"id": 2, "s": {"x": 1, "y": "a"}},
    ]


def test_last_commit_is_this_process_own(spark: SparkSession, tmp_path: Path) -> None:
    assert spark_jobs.last_commit(str(tmp_path)) is None
    spark_jobs.write(spark.range(1), str(tmp_path), mode="append")
    write_deltalake(str(tmp_path), pa.table({"id": pa.array([5], pa.int64())}), mode="append")
    assert spark_jobs.last_commit(tmp_path.as_uri()) == 0
