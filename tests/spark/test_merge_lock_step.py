"""Random merges by delta-spark and by us leave the same rows and tell the same figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import ROOT

CASES = 2


@pytest.mark.soak
@pytest.mark.extra
def test_lock_step_with_delta_spark(tmp_path: Path, seed: str) -> None:
    output = tmp_path / "result.json"
    program = ROOT / "benchmarks" / "soak" / "merge.py"
    done = subprocess.run(
        [sys.executable, str(program), "--cases", "0", "--lock-step", str(CASES), "--seed", seed,
         "--output", str(output)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert sum(json.loads(output.read_text())["lock_step"].values()) == CASES
