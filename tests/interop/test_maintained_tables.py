"""A sample of tables that we write, maintained by peers: we read them after each step, and go on.

`make soak-maintained-tables` takes every feature alone and more sets, with delta-spark.
"""

from __future__ import annotations

from pathlib import Path

import deltalake
import pytest

from tests.support.delta_spark import sample_by_delta_spark
from tests.support.peers_maintain import DONE, NO_SENSE, Step, check_maintained, steps_of_deltalake
from tests.support.soak import SEED
from tests.support.written_features import all_ways


@pytest.mark.slow
@pytest.mark.parametrize("feature", ["partitions", "vectors", "change-data", "v2-checkpoint"])
def test_deltalake_maintains_what_we_wrote(feature: str, tmp_path: Path) -> None:
    peers = {"deltalake": steps_of_deltalake()}
    found = check_maintained(peers, f"{SEED}:{feature}", [all_ways()[feature]], tmp_path, operations=3)
    assert DONE in found["peers"]["deltalake"].values(), found


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_maintains_what_we_wrote(tmp_path: Path) -> None:
    report = sample_by_delta_spark(
        "maintained-tables", tmp_path / "report.json", "--first", "1", "--operations", "3", "--steps", "5"
    )
    failures = [table["error"] for table in report["tables"] if "error" in table]
    assert not failures, "\n".join(failures)
    (table,) = report["tables"]
    said = table["peers"]["delta-spark"]
    assert len(said) == 5
    assert set(said.values()) <= {DONE, NO_SENSE}, said
    assert DONE in said.values()


@pytest.mark.slow
def test_a_step_that_loses_rows_is_noticed(tmp_path: Path) -> None:
    loses = Step(name="compact", run=lambda path, _: deltalake.DeltaTable(str(path)).delete("id >= 0"))
    with pytest.raises(AssertionError, match="after compact by deltalake"):
        check_maintained({"deltalake": (loses,)}, "x", [all_ways()["partitions"]], tmp_path, operations=1)


@pytest.mark.slow
def test_a_step_that_commits_what_it_cannot_read_is_taken_back(tmp_path: Path) -> None:
    """deltalake does so to partitions of negative decimals; the tables' other steps are still judged."""

    def breaks(path: Path, _: object) -> None:
        deltalake.DeltaTable(str(path)).delete("id >= 0")
        raise deltalake.exceptions.DeltaError("Failed to parse value '-1.-5' as 'decimal(5,2)'")

    steps = (Step(name="delete", run=breaks), steps_of_deltalake()[0])
    found = check_maintained({"deltalake": steps}, "x", [all_ways()["partitions"]], tmp_path, operations=1)
    said = found["peers"]["deltalake"]
    assert said == {
        "delete": "it cannot make the name of a partition of a negative decimal",
        steps[1].name: DONE,
    }
