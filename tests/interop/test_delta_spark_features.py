"""A sample of tables that delta-spark wrote with several features each, read here at every version.

`make soak-read-features` takes every pair of features.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.delta_spark import sample_by_delta_spark
from tests.support.feature_sets import EXCLUDING, FEATURES, covering_sets, possible_pairs

TABLES = 1


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the soak's program says of the sample."""
    out = tmp_path_factory.mktemp("features") / "report.json"
    return sample_by_delta_spark("read-features", out, "--first", str(TABLES), "--operations", "6")


@pytest.mark.extra
@pytest.mark.spark
def test_tables_with_several_features_read_equal(report: dict[str, Any]) -> None:
    failures = [
        f"{one['table']} {one['features']}: {one['error']}" for one in report["tables"] if "error" in one
    ]
    assert not failures, "\n".join(failures)
    assert report["passed"] == TABLES
    assert report["versions"] > 3 * TABLES


def test_the_sets_cover_every_pair(seed: str) -> None:
    sets = covering_sets(random.Random(seed), 60)
    assert len(sets) >= 60
    covered = {pair for pair in possible_pairs() if any(pair <= one for one in sets)}
    assert covered == possible_pairs()
    assert not [pair for pair in EXCLUDING if any(pair <= one for one in sets)]
    assert set().union(*sets) == set(FEATURES)
