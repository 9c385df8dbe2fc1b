"""Random operations by delta-spark and by spark_jobs on copies of a table, and writers of both kinds at once.

`make soak-lock-step` and `make soak-mixed-writers` run them at full counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.delta_spark import sample_by_delta_spark
from tests.support.soak import rounds

pytestmark = [pytest.mark.extra, pytest.mark.spark]

TABLES, OPERATIONS = rounds(usual=2, soak=10), rounds(usual=14, soak=100)
"""Each operation takes a second or two, most of it in delta-spark."""


def test_both_come_to_the_same_tables(tmp_path: Path) -> None:
    asked = ["--operations", str(OPERATIONS), "--drawn", str(TABLES)]
    report = sample_by_delta_spark("lock-step", tmp_path / "report.json", *asked)
    assert report["failures"] == []
    assert len(report["tables"]) == TABLES
    committed = sum(count for name, count in report["outcomes"].items() if "refused" not in name)
    assert committed > OPERATIONS / 2


@pytest.mark.soak
def test_no_writer_and_no_rewrite_is_aborted(tmp_path: Path) -> None:
    asked = ["--minutes", "0.1", "--contested-minutes", "0.06"]
    report = sample_by_delta_spark("mixed-writers", tmp_path / "report.json", *asked)
    assert report["passed"], report
    assert all(sum(part["statements"].values()) >= 4 for part in report["own_rows"])
    assert all(part["committed"] for part in report["one_key"])
