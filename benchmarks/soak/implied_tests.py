"""The tests that shorter ones imply, which `.ci/run` leaves out: those marked `soak`, at usual counts.

    nice python benchmarks/soak/implied_tests.py

Writes `benchmarks/results/soak-implied-tests.json`: how many passed, and the tests that failed. Exits with
pytest's code.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from benchmarks.soak.samples import environment, outcome  # noqa: E402 - a program
from tests.support.soak import SEED  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-implied-tests.json"


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaward-implied-") as scratch:
        junit = Path(scratch) / "tests.xml"
        code = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "soak", f"--junitxml={junit}"],
            cwd=REPOSITORY,
            env=environment(SEED),
            check=False,
        ).returncode
        found = outcome(junit)
    report = report_head("implied-tests", seed=SEED, seconds=time.monotonic() - began) | found
    RESULT.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{RESULT.name}: {found['passed']} passed, {found['failed']} failed")
    return code


if __name__ == "__main__":
    sys.exit(main())
