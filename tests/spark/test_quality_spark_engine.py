"""Spark's tasks give the verdict that docs/quality.md states, at the same positions as the driver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_core.jobs.params.quality import parse_quality
from delta_core.storage.open import open_store
from spark_jobs.quality import evaluation
from spark_jobs.quality.driver_engine import DriverEngine
from spark_jobs.quality.evaluation import evaluate
from spark_jobs.quality.gate import GateContext, QualityGate
from spark_jobs.quality.spark_engine import POSITION, SparkEngine, keyed_rows
from spark_jobs.quality.suite import plan_suite
from spark_jobs.scoped_conf import scoped_conf
from tests.support.quality import BETWEEN, IN_SET, NOT_NULL, UNIQUE, expect, quality
from tests.support.spark import rows_of
from tests.support.staged import VALUES, stage
from tests.support.verdicts import CASES, ROWS, verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN = {
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2",
}
"""Settings that a session may have, none of which is to change a verdict."""

SOME = [
    expect("expect_column_values_to_match_regex", column="s", regex=r"^\w*$"),
    expect(IN_SET, column="id", value_set=["1", "2", "3", "4"]),
    expect(BETWEEN, column="m", max_value=3.3),
    expect(UNIQUE, column="n"),
    expect("expect_column_mean_to_be_between", column="m", min_value="2.2557142", max_value="2.2557143"),
]
SOME_BAD = {2: 1, 3: 2, 4: 2, 5: 1, 6: 1, 7: 2, 2**53 + 1: 1}
"""By id, how many of them a row of `ROWS` does not meet."""


@pytest.mark.parametrize(
    ("parts", "per_file", "partition_by"),
    [(1, 1000, ()), (3, 1000, ("part",)), (20, 1000, ("part",)), (2, 5, ("part",)), (1, 5, ())],
)
def test_positions_are_those_of_the_staged_rows(
    spark: SparkSession, tmp_path: Path, parts: int, per_file: int, partition_by: tuple[str, ...]
) -> None:
    table = pa.table(
        {
            "id": pa.array(range(120), pa.int64()),
            "part": pa.array([None if n % 20 == 7 else n % parts for n in range(120)], pa.int32()),
            "x": pa.array([None if n % 9 == 0 else n for n in range(120)], pa.float64()),
        }
    )
    files = stage(tmp_path, table, partition_by=partition_by, per_file=per_file)
    found = sorted(keyed_rows(spark, files).toArrow().to_pylist(), key=lambda row: row[POSITION])
    assert [row.pop(POSITION) for row in found] == list(range(120))
    assert found == files.to_table().to_pylist()


@pytest.mark.slow
def test_every_verdict_is_the_documented_one(spark: SparkSession, tmp_path: Path) -> None:
    files = stage(tmp_path, ROWS, per_file=3)
    params = parse_quality(quality(*[case.expectation for case in CASES]))
    assert params is not None
    planned = plan_suite(params, files.schema)
    engine = SparkEngine(spark, files)
    with scoped_conf(spark, FOREIGN):
        outcomes = evaluate(engine, files, planned, samples=5)
        engine.close()
    here = evaluate(DriverEngine(files), files, planned, samples=5)
    for case, outcome, other in zip(CASES, outcomes, here, strict=True):
        assert verdict(case, outcome) == [], case.expectation
        seen = (outcome.observed, outcome.unexpected_percent, repr(outcome.samples))
        assert seen == (other.observed, other.unexpected_percent, repr(other.samples)), case.expectation


@pytest.mark.parametrize(("driver_rows", "engine"), [(9, "driver"), (8, "spark")])
def test_a_batch_at_the_threshold_has_one_verdict(
    spark: SparkSession, tmp_path: Path, driver_rows: int, engine: str
) -> None:
    params = parse_quality(quality(*SOME, on_failure="quarantine"))
    assert params is not None
    files = stage(tmp_path / "t", ROWS, per_file=3)
    context = GateContext(store=open_store(str(tmp_path / "t")), job_id="j", session=lambda: spark)
    gate = QualityGate(params, context, driver_rows=driver_rows)
    gate.prepare(files.schema)
    kept = gate.audit(files)
    assert kept is not None
    assert kept.to_table().column("id").to_pylist() == [1]
    aside = rows_of(gate.output["quarantine_uri"], version=gate.output["quarantine_version"])
    assert {row["id"]: len(row["_quarantine_expectations"]) for row in aside} == SOME_BAD
    report: dict[str, Any] = json.loads(Path(gate.output["report_json"][7:]).read_text())
    assert report["engine"] == engine
    assert [entry["unexpectedCount"] for entry in report["results"]] == [3, 4, 1, 2, None]


def test_an_answer_of_too_many_rows_is_counted_and_not_collected(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = stage(tmp_path, VALUES.drop_columns(["tags", "raw"]))
    params = parse_quality(quality(expect(NOT_NULL, column="x")))
    assert params is not None
    monkeypatch.setattr(evaluation, "MAX_COLLECTED_ROWS", 0)
    planned = plan_suite(params, files.schema)
    for engine in (SparkEngine(spark, files), DriverEngine(files)):
        (uncollected,) = evaluate(engine, files, planned, samples=3)
        assert (uncollected.success, uncollected.unexpected_count, uncollected.rows) == (False, 2, None)


def test_a_condition_that_fails_on_a_value_fails_the_expectation_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = stage(tmp_path, ROWS, per_file=3)
    failing = {"row_condition": "CAST(s AS INT) > 0", "condition_parser": "spark"}
    params = parse_quality(
        quality(
            expect(NOT_NULL, column="n", **failing),
            expect(UNIQUE, column="n", **failing),
            expect("expect_column_median_to_be_between", column="n", min_value=0, **failing),
            expect(NOT_NULL, column="n"),
        )
    )
    assert params is not None
    planned = plan_suite(params, files.schema)
    for engine in (SparkEngine(spark, files), DriverEngine(files)):
        outcomes = evaluate(engine, files, planned, samples=3)
        assert [outcome.error is not None for outcome in outcomes] == [True, True, True, False]
        assert outcomes[3].unexpected_count == 1
