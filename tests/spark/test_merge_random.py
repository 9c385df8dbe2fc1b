"""Random merges leave what the model says; `make soak-merge` runs hundreds of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.merge_runs import check_against_model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 12


def test_random_merges_equal_the_model(spark: SparkSession, tmp_path: Path, seed: str) -> None:
    outcomes = [
        check_against_model(spark, f"{seed}:{number}", tmp_path / str(number)) for number in range(CASES)
    ]
    assert "merged" in outcomes
