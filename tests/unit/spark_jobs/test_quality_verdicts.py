"""Every common expectation means what docs/quality.md says, judged in the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import QualitySuiteError
from delta_core.jobs.params.quality import parse_quality
from delta_core.schema.arrow import from_arrow
from spark_jobs.quality.driver_engine import DriverEngine
from spark_jobs.quality.evaluation import evaluate
from spark_jobs.quality.suite import plan_suite
from tests.support.quality import quality
from tests.support.staged import stage
from tests.support.verdicts import CASES, REFUSED, ROWS, verdict


def test_every_verdict_is_the_documented_one(tmp_path: Path) -> None:
    files = stage(tmp_path, ROWS, per_file=3)
    params = parse_quality(quality(*[case.expectation for case in CASES]))
    assert params is not None
    planned = plan_suite(params, files.schema)
    outcomes = evaluate(DriverEngine(files), files, planned, samples=5)
    for case, outcome in zip(CASES, outcomes, strict=True):
        assert verdict(case, outcome) == [], case.expectation


@pytest.mark.parametrize(("expectation", "word"), REFUSED, ids=lambda one: str(one)[:60])
def test_what_has_no_one_meaning_is_refused_by_name(expectation: dict[str, Any], word: str) -> None:
    params = parse_quality(quality(expectation))
    assert params is not None
    with pytest.raises(QualitySuiteError) as caught:
        plan_suite(params, from_arrow(ROWS.schema))
    assert expectation["type"] in str(caught.value)
    assert word in str(caught.value)
    assert caught.value.fix
