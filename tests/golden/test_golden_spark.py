"""The golden tables, read by Spark as by delta_core: rows at versions, and changes."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_core.errors import DeltaWarning
from tests.support.soak import SEED, SOAKING
from tests.support.spark import spark_session
from tests.support.spark_reads import assert_changes_alike, assert_reads_alike

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ALWAYS = (
    "dv-with-columnmapping",
    "spark-shredded-variant-preview-delta-b@snapshot",
    "table-with-columnmapping-mode-id",
    "type-widening",
    "type-widening-nested",
)
"""Tables of delta-spark with what we do not write ourselves."""


def chosen(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of ALWAYS, and a few with rows; all with rows under DELTAWARD_SOAK."""
    by_name = {case["name"]: case for case in cases}
    of_rows = [case for case in cases if case["expected"]["kind"] == "rows" and case["name"] not in ALWAYS]
    drawn = of_rows if SOAKING else random.Random(SEED).sample(of_rows, 4)
    return [*(by_name[name] for name in ALWAYS), *drawn]


def test_spark_reads_golden_tables_as_delta_core(spark: SparkSession, golden_dir: Path) -> None:
    cases = chosen(json.loads((golden_dir / "manifest.json").read_text(encoding="utf-8")))
    wrong: dict[str, str] = {}
    for case in cases:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeltaWarning)
                _check(spark, golden_dir, case)
        except Exception as error:
            wrong[case["name"]] = f"{type(error).__name__}: {error}"[:1000]
    assert wrong == {}


def _check(spark: SparkSession, golden_dir: Path, case: dict[str, Any]) -> None:
    path = golden_dir / case["table"]
    if "cdf" in case:
        assert_changes_alike(spark, path, first=case["cdf"]["start"], last=case["cdf"].get("end"))
    else:
        assert_reads_alike(spark, path, versions=[case["version"]])
