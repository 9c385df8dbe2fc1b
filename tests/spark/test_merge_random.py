"""Random merges leave what the model says; `make soak-merge` runs hundreds of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.merge_runs import check_against_model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("cases", [range(1), pytest.param(range(1, 5), marks=pytest.mark.slow)])
def test_random_merges_equal_the_model(spark: SparkSession, tmp_path: Path, seed: str, cases: range) -> None:
    outcomes = [check_against_model(spark, f"{seed}:{number}", tmp_path / str(number)) for number in cases]
    assert set(outcomes) <= {"merged", "refused"}
    assert "merged" in outcomes or len(cases) < 6
