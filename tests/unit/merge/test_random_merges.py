"""Random merges in Arrow leave what the model says, as they do on Spark."""

from __future__ import annotations

from pathlib import Path

from tests.support.arrow_merges import check_arrow_against_model
from tests.support.soak import rounds


def test_random_merges_equal_the_model(tmp_path: Path, seed: str) -> None:
    count = rounds(usual=25, soak=300)
    outcomes = [
        check_arrow_against_model(f"{seed}:{number}", tmp_path / str(number)) for number in range(count)
    ]
    assert set(outcomes) <= {"merged", "refused", "changed nothing"}
    assert "merged" in outcomes
