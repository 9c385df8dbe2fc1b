"""Random merges leave what the model says; `make soak-merge` runs hundreds of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_core.jobs.params.engine_io import EngineIO
from tests.support.merge_runs import check_against_model
from tests.support.row_statement_runs import FEED, TRACKED, VECTORS
from tests.support.soak import rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"vectors": VECTORS, "everything": VECTORS | FEED | TRACKED, "feed": FEED}


@pytest.mark.parametrize("cases", [range(1), pytest.param(range(1, 5), marks=pytest.mark.slow)])
def test_random_merges_equal_the_model(spark: SparkSession, tmp_path: Path, seed: str, cases: range) -> None:
    outcomes = [check_against_model(spark, f"{seed}:{number}", tmp_path / str(number)) for number in cases]
    assert set(outcomes) <= {"merged", "refused"}
    assert "merged" in outcomes or len(cases) < 6


@pytest.mark.parametrize("kind", KINDS)
def test_random_merges_of_tables_with_features_equal_the_model(
    spark: SparkSession, tmp_path: Path, seed: str, kind: str
) -> None:
    for number in range(rounds(usual=1, soak=100)):
        case = f"{seed}:{kind}:{number}"
        engine_io = random.Random(case).choice((EngineIO.NATIVE, EngineIO.ARROW))
        outcome = check_against_model(spark, case, tmp_path / str(number), KINDS[kind], engine_io=engine_io)
        assert outcome in ("merged", "refused")
