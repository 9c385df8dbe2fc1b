"""Spark reads a table with any feature as delta_core does.

`make soak-reading-features` takes every table and every version, else the seed draws a few.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import spark_jobs
from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.errors import (
    ConfigurationError,
    InvalidTableError,
    PathEscapeError,
    RowTrackingDisabledError,
    SchemaMismatchError,
    TableChangedError,
)
from delta_core.jobs.params.engine_io import EngineIO
from spark_jobs.reader import row_masks
from spark_jobs.session import is_connect
from tests.support.read_tables import TABLES, table_with
from tests.support.soak import drawn
from tests.support.spark import collected
from tests.support.spark_reads import arrow, assert_changes_alike, assert_reads_alike, assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

WAYS = (EngineIO.NATIVE, EngineIO.ARROW)
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.mark.parametrize(("name", "way"), drawn([*product(TABLES, WAYS)], usual=4))
def test_every_version_is_read_as_by_delta_core(
    spark: SparkSession, tmp_path: Path, name: str, way: str
) -> None:
    table_with(name, tmp_path)
    last = DeltaTable(tmp_path).version()
    assert assert_reads_alike(spark, tmp_path, versions=drawn(range(last + 1), usual=3), engine_io=way) >= 2


@pytest.mark.parametrize(
    ("name", "way"),
    drawn([*product([name for name in TABLES if TABLES[name].records_changes], WAYS)], usual=2),
)
def test_changes_are_read_as_by_delta_core(spark: SparkSession, tmp_path: Path, name: str, way: str) -> None:
    table_with(name, tmp_path)
    last = DeltaTable(tmp_path).version()
    assert assert_changes_alike(spark, tmp_path, engine_io=way)
    assert_changes_alike(spark, tmp_path, first=last // 2, last=last, engine_io=way)


@pytest.fixture(name="deleted")
def deleted_fixture(tmp_path: Path) -> Path:
    rows = pa.table({"id": pa.array(range(20_000), pa.int64()), "x": pa.array(np.arange(20_000) % 7)})
    write_deltalake(tmp_path, rows, max_rows_per_file=10_000, configuration=VECTORS)
    DeltaTable(tmp_path).delete("id % 10 = 3 AND id < 9000 OR id = 19999")
    return tmp_path


@pytest.mark.parametrize(
    ("local", "whole"), [(1 << 30, 1 << 30), (0, 1 << 30), (0, 0)], ids=["driver", "tasks", "chunks"]
)
def test_masks_are_made_by_the_driver_or_tasks_and_may_have_chunks(
    spark: SparkSession, deleted: Path, monkeypatch: pytest.MonkeyPatch, local: int, whole: int
) -> None:
    monkeypatch.setattr(row_masks, "LOCAL_BYTES", {False: local, True: local})
    monkeypatch.setattr(row_masks, "WHOLE_FILE_BYTES", whole)
    assert_reads_alike(spark, deleted)


def test_files_without_a_deletion_vector_are_not_joined(spark: SparkSession, tmp_path: Path) -> None:
    for start in (0, 100):
        rows = pa.table({"id": pa.array(range(start, start + 100), pa.int64())})
        write_deltalake(tmp_path, rows, mode="append", configuration=VECTORS if not start else None)
    assert "Join" not in plan_of(spark_jobs.read(spark, str(tmp_path)))
    DeltaTable(tmp_path).delete("id = 5")
    plan = plan_of(spark_jobs.read(spark, str(tmp_path)))
    assert plan.count("BroadcastHashJoin") == 1
    assert plan.count("FileScan") == 2
    assert "Python" not in plan
    assert "MapInArrow" not in plan


def plan_of(frame: Any) -> str:
    if is_connect(frame.sparkSession):
        return str(frame._explain_string(mode="simple"))
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_where_is_applied_to_rows_and_files(spark: SparkSession, deleted: Path) -> None:
    for where in ("id = 3", "id IN (3, 4, 19999) OR x IS NULL", "id > 19990"):
        found = collected(spark_jobs.read(spark, str(deleted), where=where, columns=["ID"]))
        expected = DeltaTable(deleted).to_pyarrow_table(columns=["id"], filters=where).to_pylist()
        assert found == sorted(expected, key=repr)


def test_a_deletion_vector_beyond_its_file_is_refused(spark: SparkSession, deleted: Path) -> None:
    commit = deleted / "_delta_log" / f"{1:020}.json"
    lines = []
    for line in commit.read_text().splitlines():
        action = json.loads(line)
        if "add" in action:
            action["add"]["stats"] = json.dumps({"numRecords": 1000, "tightBounds": False})
        lines.append(json.dumps(action))
    commit.write_text("\n".join(lines))
    with pytest.raises(InvalidTableError, match="refers to row"):
        spark_jobs.read(spark, str(deleted))


def test_the_rows_of_a_file_are_counted_where_the_log_does_not(spark: SparkSession, deleted: Path) -> None:
    commit = deleted / "_delta_log" / f"{1:020}.json"
    lines = []
    for line in commit.read_text().splitlines():
        action = json.loads(line)
        action.get("add", {}).pop("stats", None)
        lines.append(json.dumps(action))
    commit.write_text("\n".join(lines))
    assert_reads_alike(spark, deleted)


def test_a_shallow_clone_reads_below_allowed_roots_only(spark: SparkSession, deleted: Path) -> None:
    source, clone = deleted, deleted.parent / f"{deleted.name}-clone"
    clone_table(source, clone, shallow=True)
    write_deltalake(
        clone, pa.table({"id": pa.array([-1], pa.int64()), "x": pa.array([1], pa.int64())}), mode="append"
    )
    DeltaTable(clone, allowed_roots=[source]).delete("id = 11000")
    with pytest.raises(PathEscapeError):
        spark_jobs.read(spark, str(clone))
    for way in WAYS:
        assert_reads_alike(spark, clone, roots=[source], engine_io=way)
    table = spark_jobs.DeltaTable.forPath(spark, str(clone), allowed_roots=[source])
    expected = DeltaTable(clone, allowed_roots=[source]).to_pyarrow_table()
    assert table.alias("t").toDF().count() == expected.num_rows


@pytest.mark.parametrize("way", drawn(WAYS, usual=1))
def test_a_merge_into_a_shallow_clone_reads_below_allowed_roots_only(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    write_deltalake(source, pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}))
    clone_table(source, clone, shallow=True)
    rows = spark.createDataFrame([(2, 20), (4, 40)], "id bigint, x bigint").alias("s")

    def merge(*roots: Path) -> None:
        table = spark_jobs.DeltaTable.forPath(spark, str(clone), allowed_roots=roots, engine_io=way)
        builder = table.alias("t").merge(rows, "t.id = s.id").whenMatchedUpdateAll()
        builder.whenNotMatchedInsertAll().execute()

    with pytest.raises(PathEscapeError):
        merge()
    merge(source)
    found = DeltaTable(clone, allowed_roots=[source]).to_pyarrow_table().sort_by("id")
    assert found.to_pydict() == {"id": [1, 2, 3, 4], "x": [1, 20, 3, 40]}
    assert DeltaTable(source).to_pyarrow_table().sort_by("id")["x"].to_pylist() == [1, 2, 3]


def test_row_ids_need_row_tracking(spark: SparkSession, deleted: Path) -> None:
    with pytest.raises(RowTrackingDisabledError):
        spark_jobs.read(spark, str(deleted), row_ids=True)


def test_row_ids_follow_the_columns_that_are_chosen(spark: SparkSession, tmp_path: Path) -> None:
    table_with("row-tracking", tmp_path)
    frame = spark_jobs.read(spark, str(tmp_path), columns=["id"], row_ids=True)
    assert frame.columns == ["id", "_metadata"]
    assert frame.select("_metadata.*").columns == ["row_id", "row_commit_version"]


def test_changes_by_time_columns_and_predicate(spark: SparkSession, tmp_path: Path) -> None:
    table_with("change-data", tmp_path)
    table = DeltaTable(tmp_path)
    times = {entry.version: entry.timestamp_ms for entry in table.history()}
    frame = spark_jobs.read_changes(
        spark,
        str(tmp_path),
        starting_timestamp=times[1],
        ending_timestamp=dt.datetime.fromtimestamp(times[2] / 1000, dt.UTC),
        columns=["ID", "_change_type", "_commit_version"],
        where="_change_type <> 'insert'",
    )
    expected = table.load_cdf(
        1, 2, columns=["id", "_change_type", "_commit_version"], predicate="_change_type <> 'insert'"
    )
    assert_same(arrow(frame), expected.read_all(), "changes by time")


def test_what_is_no_range_of_changes_is_refused(spark: SparkSession, deleted: Path) -> None:
    def changes(**options: Any) -> None:
        spark_jobs.read_changes(spark, str(deleted), **options)

    with pytest.raises(ConfigurationError, match="start"):
        changes()
    with pytest.raises(ConfigurationError, match="start"):
        changes(starting_version=0, starting_timestamp=0)
    with pytest.raises(ConfigurationError, match="ending"):
        changes(starting_version=0, ending_version=1, ending_timestamp=1)
    with pytest.raises(ConfigurationError):
        changes(starting_version=1, ending_version=0)
    with pytest.raises(TableChangedError):
        changes(starting_version=0)


def test_columns_that_do_not_exist_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table_with("change-data", tmp_path)
    with pytest.raises(SchemaMismatchError, match="nothing"):
        spark_jobs.read_changes(spark, str(tmp_path), starting_version=0, columns=["nothing"])


@pytest.mark.parametrize("name", ["vectors", "row-tracking"])
def test_files_that_spark_skips_are_read_with_every_feature(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Every second file is read through Arrow, and the others natively."""
    table_with(name, tmp_path)
    log = tmp_path / "_delta_log"
    for checksum in log.glob("*.crc"):
        checksum.unlink()
    for file in sorted(tmp_path.rglob("part-*.parquet"))[::2]:
        file.rename(file.with_name(f"_{file.name}"))
        for commit in log.glob("*.json"):
            commit.write_text(commit.read_text().replace(file.name, f"_{file.name}"))
    plan = plan_of(spark_jobs.read(spark, str(tmp_path)))
    assert "FileScan" in plan
    assert "MapInArrow" in plan
    assert_reads_alike(spark, tmp_path, versions=drawn(range(DeltaTable(tmp_path).version() + 1), usual=3))
    if TABLES[name].records_changes:
        assert_changes_alike(spark, tmp_path)


def test_files_are_those_of_the_log(spark: SparkSession, deleted: Path) -> None:
    def listed(rows: Sequence[Any]) -> list[str]:
        return sorted(row["path"] for row in rows)

    frame = spark_jobs.files(spark, str(deleted))
    assert_same(frame.toArrow(), DeltaTable(deleted).snapshot.files.to_table(), "files")
    assert frame.where("deletion_vector IS NOT NULL").count() == 2
    first = spark_jobs.files(spark, str(deleted), version=0, where="id < 10")
    assert len(listed(first.collect())) == 1
