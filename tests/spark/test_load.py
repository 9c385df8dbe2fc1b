"""The job kind `load`: sources, the contract, and what a bad file does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from spark_jobs.job_kinds import register
from spark_jobs.spark_executor import SparkExecutor
from tests.support.spark import files_below, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = {
    "columns": [
        {"name": "month", "type": "int", "nullable": False},
        {"name": "tail", "type": "string"},
        {"name": "delay", "type": "double"},
    ],
    "constraints": [{"name": "a month", "expression": "month between 1 and 12"}],
}


def load(spark: SparkSession, table: Path, files: list[Path], **params: Any) -> JobResult:
    source = {"format": files[0].suffix.removeprefix("."), "uris": [str(file) for file in files]}
    source |= params.pop("source", {})
    spec = JobSpec(kind="load", table=TableRef(uri=str(table)), params={"source": source, **params})
    registry = JobRegistry(group=None)
    register(registry)
    return run_job(spec, JobContext(executor=SparkExecutor(spark)), registry=registry)


def csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_csv_is_typed_by_the_contract(spark: SparkSession, tmp_path: Path) -> None:
    file = csv(tmp_path / "m.csv", "month,tail,delay\n1,N1,-2.5\n2,NA,NA\n")
    result = load(
        spark,
        tmp_path / "t",
        [file],
        contract=CONTRACT,
        source={"options": {"nullValue": "NA"}},
        partition_by=["month"],
    )
    assert result.status is JobStatus.SUCCEEDED, result.error
    assert rows_of(tmp_path / "t") == [
        {"delay": -2.5, "month": 1, "tail": "N1"},
        {"delay": None, "month": 2, "tail": None},
    ] or rows_of(tmp_path / "t") == [
        {"month": 1, "tail": "N1", "delay": -2.5},
        {"month": 2, "tail": None, "delay": None},
    ]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("month,tail,delay\n1,N1,soon\n", "CONSTRAINT_VIOLATION", "soon"),
        pytest.param(
            "month,tail,delay\n,N1,1\n", "CONSTRAINT_VIOLATION", "NOT NULL month", marks=pytest.mark.soak
        ),
        ("month,tail,delay\n13,N1,1\n", "CONSTRAINT_VIOLATION", "a month"),
        ("month,tail,delay,extra\n1,N1,1,x\n", "SCHEMA_MISMATCH", "extra"),
        ("month,tail,delay\n1,N1,1,x,y\n", "JOB_FAILED", ""),
    ],
)
def test_a_bad_csv_is_refused_with_nothing_visible(
    spark: SparkSession, tmp_path: Path, text: str, code: str, words: str
) -> None:
    good = csv(tmp_path / "good.csv", "month,tail,delay\n1,N1,1\n")
    assert load(spark, tmp_path / "t", [good], contract=CONTRACT).version_to == 0
    before = files_below(tmp_path / "t")
    result = load(spark, tmp_path / "t", [csv(tmp_path / "bad.csv", text)], contract=CONTRACT)
    assert result.status is JobStatus.FAILED
    assert result.error is not None
    assert result.error.code == code, result.error
    assert words in result.error.message
    assert files_below(tmp_path / "t") == before
    assert len(rows_of(tmp_path / "t")) == 1


@pytest.mark.slow
def test_a_second_file_with_another_header_is_not_misread(spark: SparkSession, tmp_path: Path) -> None:
    first = csv(tmp_path / "a.csv", "month,tail,delay\n1,N1,1\n")
    turned = csv(tmp_path / "b.csv", "tail,month,delay\n2,3,1\n")
    result = load(spark, tmp_path / "t", [first, turned], contract=CONTRACT)
    assert result.status is JobStatus.FAILED


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_is_selected_and_checked(spark: SparkSession, tmp_path: Path) -> None:
    file = parquet(tmp_path / "[1].parquet", m=pa.array([1, 2], pa.int32()), t=["a", "b"], d=[0.5, None])
    select = {"month": "m", "tail": "upper(t)", "delay": "d"}
    result = load(spark, tmp_path / "t", [file], contract=CONTRACT, source={"select": select})
    assert result.status is JobStatus.SUCCEEDED, result.error
    assert {row["tail"] for row in rows_of(tmp_path / "t")} == {"A", "B"}


@pytest.mark.slow
def test_the_columns_of_every_parquet_file_count(spark: SparkSession, tmp_path: Path) -> None:
    files = [
        parquet(tmp_path / "a.parquet", month=pa.array([1], pa.int32())),
        parquet(tmp_path / "b.parquet", month=pa.array([2], pa.int32()), secret=["x"]),
    ]
    result = load(spark, tmp_path / "t", files, contract=CONTRACT)
    assert result.error is not None
    assert result.error.code == "SCHEMA_MISMATCH"
    assert "secret" in result.error.message
    assert files_below(tmp_path / "t") == set()


def test_replace_where_loads_a_month_again(spark: SparkSession, tmp_path: Path) -> None:
    for value, month in (("old", 1), ("other", 2)):
        file = parquet(tmp_path / f"{month}.parquet", month=pa.array([month], pa.int32()), tail=[value])
        load(spark, tmp_path / "t", [file], contract=CONTRACT, partition_by=["month"])
    again = parquet(tmp_path / "again.parquet", month=pa.array([1], pa.int32()), tail=["new"])
    result = load(
        spark, tmp_path / "t", [again], contract=CONTRACT, mode="overwrite", replace_where="month = 1"
    )
    assert result.status is JobStatus.SUCCEEDED, result.error
    assert sorted(row["tail"] for row in rows_of(tmp_path / "t")) == ["new", "other"]


@pytest.mark.slow
def test_a_dynamic_overwrite_replaces_the_months_that_have_new_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    for value, month in (("old", 1), ("other", 2)):
        file = parquet(tmp_path / f"{month}.parquet", month=pa.array([month], pa.int32()), tail=[value])
        load(spark, tmp_path / "t", [file], contract=CONTRACT, partition_by=["month"])
    again = parquet(tmp_path / "again.parquet", month=pa.array([1, 1], pa.int32()), tail=["new", "newer"])
    result = load(
        spark,
        tmp_path / "t",
        [again],
        contract=CONTRACT,
        mode="overwrite",
        partition_overwrite_mode="dynamic",
        max_records_per_file=1,
    )
    assert result.status is JobStatus.SUCCEEDED, result.error
    assert sorted(row["tail"] for row in rows_of(tmp_path / "t")) == ["new", "newer", "other"]
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 3, "a file for each row"


def test_a_dynamic_overwrite_needs_the_mode_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    file = parquet(tmp_path / "1.parquet", month=pa.array([1], pa.int32()), tail=["a"])
    result = load(spark, tmp_path / "t", [file], contract=CONTRACT, partition_overwrite_mode="dynamic")
    assert result.error is not None
    assert result.error.code == "INVALID_CONFIGURATION"


def test_a_source_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    result = load(spark, tmp_path / "t", [tmp_path / "none.parquet"], contract=CONTRACT)
    assert result.error is not None
    assert result.error.code == "JOB_ERROR"
    assert "none.parquet" in result.error.message


@pytest.mark.parametrize(
    "params",
    [{"mode": "merge"}, {"unknown": 1}, {"contract": {"columns": [{"name": "a", "type": "nonsense"}]}}],
)
def test_wrong_parameters_are_refused(spark: SparkSession, tmp_path: Path, params: dict[str, Any]) -> None:
    result = load(spark, tmp_path / "t", [tmp_path / "x.parquet"], **params)
    assert result.error is not None
    assert result.error.code == "INVALID_JOB_SPEC"
