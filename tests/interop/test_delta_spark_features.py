"""A sample of tables that delta-spark wrote with several features each, read here at every version.

`make soak-read-features` takes every pair of features.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from tests.support.feature_sets import EXCLUDING, FEATURES, covering_sets, possible_pairs
from tests.support.repository import ROOT
from tests.support.soak import SEED

PROGRAM = ROOT / "benchmarks" / "soak" / "read_features.py"
TABLES = 2


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the soak's program says of the sample; its session is a process of its own.

    Delta-spark's jars have to be in the session's class path from its start.
    """
    out = tmp_path_factory.mktemp("features") / "report.json"
    arguments = ["--no-singles", "--first", str(TABLES), "--operations", "6", "--seed", SEED]
    answer = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments, "--output", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if not out.exists() and "unresolved dependency" in answer.stderr and not os.environ.get("CI"):
        pytest.skip("delta-spark's jars are not in .tools/ivy, and Maven cannot be reached")
    assert out.exists(), answer.stderr[-4000:]
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.extra
@pytest.mark.spark
def test_tables_with_several_features_read_equal(report: dict[str, Any]) -> None:
    failures = [
        f"{one['table']} {one['features']}: {one['error']}" for one in report["tables"] if "error" in one
    ]
    assert not failures, "\n".join(failures)
    assert report["passed"] == TABLES
    assert report["versions"] > TABLES


def test_the_sets_cover_every_pair(seed: str) -> None:
    sets = covering_sets(random.Random(seed), 60)
    assert len(sets) >= 60
    covered = {pair for pair in possible_pairs() if any(pair <= one for one in sets)}
    assert covered == possible_pairs()
    assert not [pair for pair in EXCLUDING if any(pair <= one for one in sets)]
    assert set().union(*sets) == set(FEATURES)
