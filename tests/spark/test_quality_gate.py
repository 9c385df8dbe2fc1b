"""Loads with a quality gate: what is published, what is put aside, what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from delta_core.maintenance.vacuum.plan import plan_vacuum
from delta_core.schema.arrow import from_arrow
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.job_kinds import register
from spark_jobs.quality.gate import QUARANTINE_PATH, QualityGate
from spark_jobs.quality.quarantine import Quarantine
from spark_jobs.spark_executor import SparkExecutor
from tests.support.quality import BETWEEN, IN_SET, NOT_NULL, ROW_COUNT, UNIQUE, expect, quality
from tests.support.spark import files_below, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = {
    "id": pa.array([1, 2, None, 4, 5], pa.int64()),
    "state": pa.array(["new", "paid", "new", "lost", "paid"]),
    "month": pa.array([1, 1, 2, 2, 3], pa.int32()),
}
STATES = expect(IN_SET, column="state", value_set=["new", "paid"])
IDS = expect(NOT_NULL, column="id")


def load(spark: SparkSession, table: Path, *, key: str | None = None, **params: Any) -> JobResult:
    rows = params.pop("rows", ORDERS)
    file = table.parent / f"{table.name}-source.parquet"
    pq.write_table(pa.table(rows), file)
    source = {"format": "parquet", "uris": [str(file)]}
    spec = JobSpec(
        kind="load",
        table=TableRef(uri=str(table)),
        params={"source": source, **params},
        idempotency=None if key is None else IdempotencyKey(app_id=key),
        user_metadata={"dag": "orders"},
    )
    registry = JobRegistry(group=None)
    register(registry)
    # Options that a connection has for another store: table, quarantine and reports are local and take none.
    context = JobContext(executor=SparkExecutor(spark), storage_options={"aws_region": "elsewhere"})
    return run_job(spec, context, registry=registry)


def data_files(table: Path) -> set[str]:
    return {path for path in files_below(table) if not path.startswith("_deltaward")}


def report_of(result: JobResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(result.output["quality"]["report_json"][7:]).read_text())
    return found


def test_a_good_batch_is_published_with_its_outcome(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    result = load(
        spark, table, quality=quality(expect(NOT_NULL, column="STATE"), IDS | {"severity": "warning"})
    )
    assert result.status is JobStatus.SUCCEEDED, result.error
    outcome = result.output["quality"]
    assert (outcome["outcome"], outcome["rows"], outcome["bad_rows"]) == ("warned", 5, 0)
    assert outcome["failed_expectations"] == [f"{NOT_NULL}(id)"]
    assert len(rows_of(table)) == 5
    noted = json.loads(DeltaTable(str(table)).history(1)[0]["userMetadata"])
    assert noted["quality"] == outcome
    assert noted["dag"] == "orders"
    assert result.artefact_uris == (outcome["report_json"], outcome["report_html"])
    report = report_of(result)
    assert report["formatVersion"] == 1
    assert report["results"][1]["unexpectedCount"] == 1


def test_a_bad_batch_leaves_its_report_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    result = load(spark, table, quality=quality(STATES, IDS))
    assert result.status is JobStatus.FAILED
    assert result.error is not None
    assert result.error.code == "QUALITY_GATE_FAILED"
    assert not result.error.retryable
    assert f"{IN_SET}(state)" in result.error.message
    assert "lost" not in result.error.message
    outcome = result.output["quality"]
    assert (outcome["outcome"], outcome["bad_rows"], outcome["published_rows"]) == ("failed", 2, 0)
    assert not DeltaTable.is_deltatable(str(table))
    assert data_files(table) == set()
    assert report_of(result)["results"][0]["samples"] == ["lost"]


@pytest.mark.parametrize("engine", ["driver", "spark"])
def test_bad_rows_go_to_quarantine_and_good_ones_are_published(
    spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    table = tmp_path / "t"
    suite = quality(
        STATES, IDS, expect(BETWEEN, column="id", max_value=4), on_failure="quarantine", engine=engine
    )
    result = load(spark, table, key="a", partition_by=["month"], quality=suite)
    assert result.status is JobStatus.SUCCEEDED, result.error
    outcome = result.output["quality"]
    assert outcome["outcome"] == "quarantined"
    assert (outcome["rows"], outcome["published_rows"], outcome["quarantined_rows"]) == (5, 2, 3)
    assert [row["id"] for row in rows_of(table)] == [1, 2]
    put_aside = rows_of(outcome["quarantine_uri"], version=outcome["quarantine_version"])
    reasons = {row["id"]: row["_quarantine_expectations"] for row in put_aside}
    assert reasons == {None: [f"{NOT_NULL}(id)"], 4: [f"{IN_SET}(state)"], 5: [f"{BETWEEN}(id)"]}
    assert {row["_quarantine_batch"] for row in put_aside} == {"a"}
    assert all("t-source.parquet" in row["_quarantine_source"] for row in put_aside)
    assert {row["month"] for row in put_aside} == {2, 3}
    assert result.metrics.rows == 2
    assert report_of(result)["engine"] == engine
    # The files of partition 1 hold no bad row, so they are those that were staged.
    assert load(spark, table, key="a", quality=suite).already_applied
    assert len(rows_of(outcome["quarantine_uri"])) == 3
    assert {path for path in data_files(table) if path.endswith(".parquet")} == {
        path.split("/t/", 1)[-1] for path in DeltaTable(str(table)).file_uris()
    }


def test_a_failure_about_the_whole_batch_fails_it_under_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    suite = quality(STATES, expect(ROW_COUNT, min_value=10), on_failure="quarantine")
    result = load(spark, table, quality=suite)
    assert result.error is not None
    assert result.error.code == "QUALITY_GATE_FAILED"
    assert ROW_COUNT in result.error.message
    assert not (table / "_deltaward" / "quarantine").exists()


@pytest.mark.slow
def test_thresholds_fail_the_batch_whatever_the_policy(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number, limit in enumerate(({"max_bad_rows": 1}, {"max_bad_fraction": 0.3})):
        for policy in ("warn", "quarantine"):
            result = load(spark, table, quality=quality(STATES, IDS, on_failure=policy, **limit))
            assert result.error is not None, (number, policy)
            assert next(iter(limit)) in result.error.message
    warned = load(spark, table, quality=quality(STATES, IDS, on_failure="warn", max_bad_rows=2))
    assert warned.output["quality"]["outcome"] == "warned"
    assert len(rows_of(table)) == 5


def test_a_suite_that_cannot_be_checked_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    for wrong in (expect("expect_nothing"), expect(NOT_NULL, column="x"), expect(NOT_NULL, column="id", x=1)):
        result = load(spark, table, quality=quality(wrong))
        assert result.error is not None
        assert result.error.code == "INVALID_QUALITY_SUITE"
        assert wrong["type"] in result.error.message
    assert not table.exists()


def test_an_expectation_that_breaks_on_the_data_lets_nothing_pass(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    broken = expect("expect_column_mean_to_be_between", column="state", max_value=1)
    result = load(spark, table, quality=quality(broken, on_failure="warn"))
    assert result.error is not None
    assert result.error.code == "INVALID_QUALITY_SUITE"
    assert data_files(table) == set()
    reported = load(spark, table, quality=quality(broken | {"severity": "warning"}))
    assert reported.status is JobStatus.SUCCEEDED, reported.error
    assert report_of(reported)["results"][0]["error"]


def test_a_later_batch_evolves_the_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    suite = quality(IDS, on_failure="quarantine")
    load(spark, table, quality=suite)
    wider = {**ORDERS, "note": pa.array(["a", "b", "c", "d", "e"])}
    result = load(spark, table, rows=wider, merge_schema=True, quality=suite)
    assert result.status is JobStatus.SUCCEEDED, result.error
    put_aside = rows_of(result.output["quality"]["quarantine_uri"])
    assert sorted((row["note"] or "") for row in put_aside) == ["", "c"]
    assert len({row["_quarantine_batch"] for row in put_aside}) == 2


def test_an_overwrite_without_a_good_row_replaces_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    load(spark, table)
    nobody = quality(expect(IN_SET, column="state", value_set=["x"]), on_failure="quarantine")
    result = load(spark, table, mode="overwrite", quality=nobody)
    assert result.error is not None
    assert "would replace rows" in result.error.message
    assert len(rows_of(table)) == 5
    appended = load(spark, table, quality=nobody)
    assert appended.output["quality"]["published_rows"] == 0
    assert len(rows_of(table)) == 5


def test_duplicates_are_all_put_aside(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    unique = expect(UNIQUE, column="month")
    load(spark, table, quality=quality(unique, on_failure="quarantine"))
    assert [row["month"] for row in rows_of(table)] == [3]


def test_a_batch_without_rows_can_be_refused(spark: SparkSession, tmp_path: Path) -> None:
    empty = {name: column[:0] for name, column in ORDERS.items()}
    suite = quality(expect(ROW_COUNT, min_value=1), IDS)
    result = load(spark, tmp_path / "t", rows=empty, quality=suite)
    assert result.output["quality"]["failed_expectations"] == [ROW_COUNT]
    passed = load(spark, tmp_path / "t", rows=empty, quality=quality(IDS, engine="spark"))
    assert passed.output["quality"]["outcome"] == "passed"


def test_values_stay_out_of_the_reports_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    secret = expect("expect_column_max_to_be_between", column="id", max_value=2)
    result = load(spark, tmp_path / "t", quality=quality(STATES, secret, samples=0))
    outcome = result.output["quality"]
    for uri in (outcome["report_json"], outcome["report_html"]):
        assert "lost" not in Path(uri[7:]).read_text()
    assert report_of(result)["results"][1]["observed"] is None
    silent = load(spark, tmp_path / "t2", contract={"show_rows": False}, quality=quality(STATES))
    assert report_of(silent)["results"][0]["samples"] == []


def test_vacuum_leaves_reports_and_quarantine_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    load(spark, table, quality=quality(IDS, on_failure="quarantine"))
    plan = plan_vacuum(
        Snapshot.load(open_store(str(table))), retention_hours=0, enforce_retention=False, force=True
    )
    assert not [file.path for file in plan.files if "_deltaward" in file.path]
    assert (table / "_deltaward" / "quarantine" / "_delta_log").is_dir()


def test_a_try_whose_rows_another_took_out_of_quarantine_does_not_publish(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Published all the same, the bad rows would be in neither table, and no retry would bring them back."""
    table = tmp_path / "t"
    suite = quality(STATES, IDS, on_failure="quarantine")
    looked = QualityGate.require_undisturbed

    def after_another(self: QualityGate) -> None:
        monkeypatch.setattr(QualityGate, "require_undisturbed", looked)
        place = f"{table}/{QUARANTINE_PATH}"
        other = Quarantine(place, batch="a", schema=from_arrow(pa.table(ORDERS).schema))
        assert other.replace_batch([], after=other.tries(), user_metadata=None) is not None
        looked(self)

    monkeypatch.setattr(QualityGate, "require_undisturbed", after_another)
    result = load(spark, table, key="a", quality=suite)
    assert result.error is not None
    assert result.error.code == "CONCURRENT_TRANSACTION"
    assert not DeltaTable.is_deltatable(str(table))
    again = load(spark, table, key="a", quality=suite)
    outcome = again.output["quality"]
    assert (outcome["published_rows"], outcome["quarantined_rows"]) == (3, 2)
    assert len(rows_of(table)) + len(rows_of(outcome["quarantine_uri"])) == 5
