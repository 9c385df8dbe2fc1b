"""Task maps on Spark do what they do in threads."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from delta_core.errors import JobFailedError, ObjectNotFoundError
from delta_core.execution.executor import Executor, JsonObject
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.schema.partition_values import hive_directory
from spark_jobs import spark_executor
from spark_jobs.packaging import package_archive
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.worker_tasks import error_from_json, error_to_json
from spark_jobs.writer.footers import describe_file
from tests.support.spark import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_come_back_by_index(spark: SparkSession) -> None:
    executor = SparkExecutor(spark)
    tasks = [{"text": f"x{number}"} for number in range(5)]
    assert dict(executor.map(dict, tasks)) == dict(enumerate(tasks))
    assert list(executor.map(dict, [])) == []


def test_many_tasks_go_in_waves(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_executor, "WAVE_BYTES", 60)
    tasks = [{"text": "y" * 30, "number": number} for number in range(5)]
    found = dict(SparkExecutor(spark).map(dict, tasks))
    assert [found[index]["number"] for index in range(5)] == list(range(5))


def test_a_tasks_error_comes_back_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    task = {"table_uri": str(tmp_path), "path": "gone.parquet"}
    with pytest.raises(ObjectNotFoundError) as inline:
        describe_file(task)
    with pytest.raises(ObjectNotFoundError) as shipped:
        list(SparkExecutor(spark).map(describe_file, [task]))
    assert str(shipped.value) == str(inline.value)


@pytest.mark.parametrize(
    ("master", "tasks", "cores"),
    [
        ("local[4]", 1, 4),
        ("local[4]", 3, 2),
        ("local[4,2]", 8, 1),
        ("local", 1, 1),
        # Others may share a cluster's workers: a task keeps to what the scheduler gave it.
        ("spark://host:7077", 1, 3),
    ],
)
def test_the_cores_of_one_machine_are_shared_out(master: str, tasks: int, cores: int) -> None:
    settings = {"spark.master": master, "spark.task.cpus": "1" if master.startswith("local") else "3"}
    session = SimpleNamespace(conf=settings)
    assert SparkExecutor(cast(Any, session)).cores_per_task(tasks) == cores


def test_an_unforeseen_error_is_a_failed_job() -> None:
    error = error_from_json(error_to_json(KeyError("k")))
    assert isinstance(error, JobFailedError)
    assert "KeyError" in error.cause


def test_no_session_is_made_for_no_tasks() -> None:
    def make() -> SparkSession:
        raise AssertionError("a session was made")

    assert list(SparkExecutor(make).map(dict, [])) == []


def test_the_archive_holds_both_packages_and_is_named_by_content(tmp_path: Path) -> None:
    archive = package_archive(tmp_path)
    assert package_archive(tmp_path) == archive
    names = zipfile.ZipFile(archive).namelist()
    assert {"delta_core/errors/base.py", "spark_jobs/spark_executor.py"} <= set(names)
    assert hive_directory.__module__.replace(".", "/") + ".py" in names


def optimize(uri: Path, executor: Executor, engine: str) -> JobResult:
    spec = JobSpec(kind="optimize", table=TableRef(uri=str(uri)), params={}, engine=engine)
    return run_job(spec, JobContext(executor=executor))


def test_compaction_on_spark_equals_compaction_inline(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("inline", "spark"):
        for number in range(6):
            rows = pa.table({"id": [number, number + 100], "p": ["a", "b"], "s": [None, "x"]})
            write_deltalake(str(tmp_path / name), rows, mode="append", partition_by=["p"])
    results = [
        optimize(tmp_path / "inline", InlineExecutor(), "inline"),
        optimize(tmp_path / "spark", SparkExecutor(spark), "spark"),
    ]
    for result in results:
        assert result.status is JobStatus.SUCCEEDED, result.error
    assert results[0].metrics.files_added == results[1].metrics.files_added == 2
    assert results[0].metrics.files_removed == results[1].metrics.files_removed == 12
    assert rows_of(tmp_path / "inline") == rows_of(tmp_path / "spark")
    counts = [
        sorted(pa.table(DeltaTable(str(tmp_path / name)).get_add_actions()).column("num_records").to_pylist())
        for name in ("inline", "spark")
    ]
    assert counts == [[6, 6], [6, 6]]


def test_results_are_plain_json(spark: SparkSession) -> None:
    def local(task: JsonObject) -> JsonObject:
        return task

    with pytest.raises(JobFailedError):
        list(SparkExecutor(spark).map(local, [{}]))
