"""Random operations by delta-spark and by spark_jobs on copies of a table, and writers of both kinds at once.

`make soak-lock-step` and `make soak-mixed-writers` run them at full counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.delta_spark import sample_by_delta_spark

pytestmark = [pytest.mark.extra, pytest.mark.spark]

TABLES, OPERATIONS = 4, 40


def test_both_come_to_the_same_tables(tmp_path: Path) -> None:
    asked = ["--operations", str(OPERATIONS), "--drawn", str(TABLES)]
    report = sample_by_delta_spark("lock-step", tmp_path / "report.json", *asked)
    assert report["failures"] == []
    assert len(report["tables"]) == TABLES
    committed = sum(count for name, count in report["outcomes"].items() if "refused" not in name)
    assert committed > OPERATIONS / 2


def test_no_writer_and_no_rewrite_is_aborted(tmp_path: Path) -> None:
    asked = ["--minutes", "0.1", "--contested-minutes", "0.06"]
    report = sample_by_delta_spark("mixed-writers", tmp_path / "report.json", *asked)
    assert report["passed"], report
    assert all(sum(part["statements"].values()) >= 4 for part in report["own_rows"])
    assert all(part["committed"] for part in report["one_key"])
