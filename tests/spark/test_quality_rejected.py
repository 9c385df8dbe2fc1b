"""Rows that break the contract, under on_failure 'quarantine': put aside like those that miss the suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_core.jobs.job_result import JobResult, JobStatus
from tests.spark.test_load import CONTRACT, csv, load
from tests.support.quality import BETWEEN, expect, quality
from tests.support.spark import rows_of

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRING = """month,tail,delay
1,N1,2.5
2,N2,soon
,N3,1
13,N4,1
x,N5,late
3,N6,900
"""
SUITE = quality(expect(BETWEEN, column="delay", max_value=600), on_failure="quarantine")


def gated(spark: SparkSession, folder: Path, text: str, **params: Any) -> JobResult:
    return load(spark, folder / "t", [csv(folder / "m.csv", text)], contract=CONTRACT, **params)


def put_aside(result: JobResult) -> dict[str, Any]:
    rows = rows_of(result.output["quality"]["quarantine_uri"])
    return {row["tail"]: row for row in rows}


@pytest.mark.parametrize("partition_by", [None, ["month"]])
def test_every_kind_of_bad_row_goes_to_quarantine(
    spark: SparkSession, tmp_path: Path, partition_by: list[str] | None
) -> None:
    result = gated(spark, tmp_path, STRING, quality=SUITE, partition_by=partition_by)
    assert result.status is JobStatus.SUCCEEDED, result.error
    outcome = result.output["quality"]
    assert (outcome["rows"], outcome["published_rows"], outcome["quarantined_rows"]) == (6, 1, 5)
    assert [row["tail"] for row in rows_of(tmp_path / "t")] == ["N1"]
    rows = put_aside(result)
    assert {tail: row["_quarantine_expectations"] for tail, row in rows.items()} == {
        "N2": ["TYPE delay"],
        "N3": ["NOT NULL month"],
        "N4": ["a month"],
        "N5": ["TYPE month", "TYPE delay"],
        "N6": [f"{BETWEEN}(delay)"],
    }
    assert '"soon"' in rows["N2"]["_quarantine_raw"]
    assert rows["N2"]["month"] == 2
    assert rows["N3"]["_quarantine_raw"] is None
    assert rows["N4"]["_quarantine_reason"] == "violates a month"


def test_they_count_for_the_thresholds(spark: SparkSession, tmp_path: Path) -> None:
    result = gated(spark, tmp_path, STRING, quality={**SUITE, "max_bad_rows": 4})
    assert result.error is not None
    assert result.error.code == "QUALITY_GATE_FAILED"
    assert "5 bad rows" in result.error.message
    assert "the contract" in result.error.message
    assert not (tmp_path / "t" / "_deltaward" / "quarantine").exists()


def test_without_a_quarantine_they_fail_the_load(spark: SparkSession, tmp_path: Path) -> None:
    for policy in ("fail", "warn"):
        result = gated(spark, tmp_path, STRING, quality={**SUITE, "on_failure": policy})
        assert result.error is not None
        assert result.error.code == "CONSTRAINT_VIOLATION"


def test_a_good_file_passes(spark: SparkSession, tmp_path: Path) -> None:
    result = gated(spark, tmp_path, "month,tail,delay\n1,N1,2.5\n2,N2,\n", quality=SUITE)
    assert result.output["quality"]["outcome"] == "passed", result.error
    assert result.output["quality"]["quarantine_uri"] is None
    assert len(rows_of(tmp_path / "t")) == 2


def test_a_filter_drops_no_row_whose_value_became_null(spark: SparkSession, tmp_path: Path) -> None:
    """Neither published nor put aside, such a row was once in nobody's count."""
    where = {"where": "delay >= 0 AND tail <> 'N3'"}
    result = gated(spark, tmp_path, STRING, quality=SUITE, source=where)
    assert result.status is JobStatus.SUCCEEDED, result.error
    outcome = result.output["quality"]
    assert (outcome["rows"], outcome["published_rows"], outcome["quarantined_rows"]) == (5, 1, 4)
    assert set(put_aside(result)) == {"N2", "N4", "N5", "N6"}
