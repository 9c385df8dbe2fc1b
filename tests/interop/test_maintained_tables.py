"""A sample of tables that we write, maintained by peers: we read them after each step, and go on.

`make soak-maintained-tables` takes every feature alone and more sets, with delta-spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import pytest

from tests.support.peers_maintain import DONE, NO_SENSE, Step, check_maintained, steps_of_deltalake
from tests.support.repository import ROOT
from tests.support.soak import SEED
from tests.support.written_features import all_ways

PROGRAM = ROOT / "benchmarks" / "soak" / "maintained_tables.py"


def sample(out: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """What the soak's program says of a few tables. Spark's session needs a process of its own."""
    answer = subprocess.run(
        [sys.executable, str(PROGRAM), "--no-singles", "--seed", SEED, *arguments, "--output", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return (json.loads(out.read_text()) if out.exists() else {}), answer.stderr


@pytest.mark.parametrize("feature", ["partitions", "vectors", "change-data", "v2-checkpoint"])
def test_deltalake_maintains_what_we_wrote(feature: str, tmp_path: Path) -> None:
    peers = {"deltalake": steps_of_deltalake()}
    found = check_maintained(peers, f"{SEED}:{feature}", [all_ways()[feature]], tmp_path, operations=3)
    assert DONE in found["peers"]["deltalake"].values(), found


@pytest.mark.extra
@pytest.mark.spark
@pytest.mark.timeout(450)
def test_delta_spark_maintains_what_we_wrote(tmp_path: Path) -> None:
    report, errors = sample(tmp_path / "report.json", "--first", "1", "--operations", "3", "--steps", "5")
    if not report and "unresolved dependency" in errors and not os.environ.get("CI"):
        pytest.skip("delta-spark's jars are not in .tools/ivy, and Maven cannot be reached")
    assert report, errors[-4000:]
    failures = [table["error"] for table in report["tables"] if "error" in table]
    assert not failures, "\n".join(failures)
    (table,) = report["tables"]
    said = table["peers"]["delta-spark"]
    assert len(said) == 5
    assert set(said.values()) <= {DONE, NO_SENSE}, said
    assert DONE in said.values()


def test_a_step_that_loses_rows_is_noticed(tmp_path: Path) -> None:
    loses = Step(name="compact", run=lambda path, _: deltalake.DeltaTable(str(path)).delete("id >= 0"))
    with pytest.raises(AssertionError, match="after compact by deltalake"):
        check_maintained({"deltalake": (loses,)}, "x", [all_ways()["partitions"]], tmp_path, operations=1)
