"""The samples of `.ci/run` on a fresh seed, in a clone of the newest commit.

    nice python benchmarks/soak/samples.py [--seed STRING] [--area test slow]

`.ci/run` draws the same samples on every commit. This draws others, beside the work of a day; what it finds
is mended, with its seed as a test. Writes `benchmarks/results/soak-samples.json`: the outcome of each area
and the tests that failed. Exits with 1 when one did.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.faults.areas import AREAS  # noqa: E402 - a program
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-samples.json"
SHARED = "prepare"
"""The area that installs what the others start."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default=os.environ.get("DELTAWARD_SEED") or secrets.token_hex(6))
    # An area that catches seeded faults is one that draws.
    parser.add_argument("--area", nargs="+", choices=AREAS, default=list(AREAS), metavar="NAME")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    print(f"DELTAWARD_SEED={options.seed}", flush=True)
    subprocess.run(["make", "golden"], cwd=REPOSITORY, check=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaward-samples-") as scratch:
        clone = Path(scratch) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        # What is installed there already is not installed again.
        (REPOSITORY / ".tools").mkdir(exist_ok=True)
        (clone / ".tools").symlink_to(REPOSITORY / ".tools")
        code = subprocess.run(
            [clone / ".ci" / "run", SHARED, *options.area],
            env=environment(options.seed),
            check=False,
        ).returncode
        areas = {name: outcome(clone / ".ci" / "out" / f"{name}.xml") for name in options.area}
    report = {
        **report_head("samples", seed=options.seed, seconds=time.monotonic() - began),
        "passed": code == 0,
        "areas": areas,
    }
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    failed = [test for area in areas.values() for test in area["failed_tests"]]
    idle = [name for name, area in areas.items() if not area["passed"]]
    print(f"{options.output.name}: seed {options.seed}, {len(failed)} tests failed", *failed, sep="\n")
    print(f".ci/run ended with {code}; without a test that passed: {', '.join(idle) or 'no area'}")
    return code


def environment(seed: str) -> dict[str, str]:
    """The user's, with the seed; at usual counts, though a soak asks for full ones."""
    kept = {name: value for name, value in os.environ.items() if name != "DELTAWARD_SOAK"}
    return kept | {"DELTAWARD_SEED": seed}


def outcome(junit: Path) -> dict[str, Any]:
    """An area's counts; an area that did not run has passed nothing."""
    cases = list(ElementTree.parse(junit).iter("testcase")) if junit.exists() else []
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "passed": len(cases) - len(failed) - skipped,
        "failed": len(failed),
        "skipped": skipped,
        "failed_tests": [f"{case.get('classname')}::{case.get('name')}" for case in failed],
    }


if __name__ == "__main__":
    sys.exit(main())
