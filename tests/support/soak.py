"""One area's tests at full counts: `python -m tests.support.soak AREA`, which is what `make soak-AREA` runs.

An area is a program of `benchmarks/soak/` (`concurrent-appends`), a folder of `tests/` (`concurrency`) or a
file of `tests/e2e/` (`kill-points`), `tests/spark/` (`backfill`), `tests/concurrency/` (`real-stores`) or
`tests/simulation/` (`featured-simulation`). The result, with the seed, the commit, the duration, the machine
and what tests recorded of themselves, is written below `benchmarks/results/`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.repository import ROOT
from tests.support.soak_report import git, report_head

SOAKING = bool(os.environ.get("DELTAWARD_SOAK"))

SAMPLE_SEED = "2c9c64db355a"
"""Draws the samples of `make test` and of CI: a change fails for its own faults, not for what it draws.

It changes in a commit of its own. `make soak-samples` runs the same samples on a fresh seed.
"""


def rounds(*, usual: int, soak: int) -> int:
    """How often a test repeats its sample: `soak` times under `make soak-AREA`, else `usual`."""
    return soak if SOAKING else usual


def drawn(values: Iterable[Any], *, usual: int) -> list[Any]:
    """So many of the values, drawn by the seed and in their order; all of them under `make soak-AREA`."""
    known = list(values)
    if SOAKING or usual >= len(known):
        return known
    places = random.Random(f"{SEED}:{len(known)}").sample(range(len(known)), usual)
    return [known[place] for place in sorted(places)]


def sample(area: str, out: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """What an area's program says of a few tables, and its complaints.

    In a process of its own: the program may need a Spark session that is not the tests'.
    """
    program = _program(area)
    answer = subprocess.run(
        [sys.executable, str(program), "--no-singles", "--seed", SEED, *arguments, "--output", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return (json.loads(out.read_text()) if out.exists() else {}), answer.stderr


SEED = os.environ.get("DELTAWARD_SEED") or SAMPLE_SEED
"""What draws the samples of this run."""


def _program(area: str) -> Path:
    return ROOT / "benchmarks" / "soak" / f"{area.replace('-', '_')}.py"


def _area_path(area: str) -> Path | None:
    name = area.replace("-", "_")
    tests = ROOT / "tests"
    files = (tests / folder / f"test_{name}.py" for folder in ("e2e", "spark", "concurrency", "simulation"))
    places = (tests / name, *files)
    return next((path for path in places if path.exists()), None)


def _recorded(case: ElementTree.Element) -> dict[str, str | None]:
    return {str(item.get("name")): item.get("value") for item in case.iter("property")}


def main(area: str) -> int:
    """Run the area; returns the exit code of its tests."""
    program = _program(area)
    if program.is_file():
        return subprocess.run([sys.executable, str(program)], cwd=ROOT, check=False).returncode
    path = _area_path(area)
    if path is None:
        print(f"There is no area {area} in benchmarks/soak, tests or tests/e2e", file=sys.stderr)
        return 2
    seed = os.environ.get("DELTAWARD_SEED") or git("rev-parse", "HEAD")[:12] or "unknown"
    report = ROOT / ".ci" / "out" / f"soak-{area}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    code = subprocess.run(
        [sys.executable, "-m", "pytest", str(path), f"--junitxml={report}", "-o", "timeout=0"],
        cwd=ROOT,
        check=False,
        env={**os.environ, "DELTAWARD_SOAK": "1", "DELTAWARD_SEED": seed},
    ).returncode
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    result = {
        **report_head(area, seed=seed, seconds=time.monotonic() - began),
        "passed": len(cases) - len(failed) - len(skipped),
        "failed": len(failed),
        "skipped": len(skipped),
        "recorded": {case.get("name"): found for case in cases if (found := _recorded(case))},
        "failures": [f"{case.get('classname')}::{case.get('name')}" for case in failed],
    }
    # On a Connect server (tests.support.spark), beside the result of a classic session.
    suffix = "-connect" if os.environ.get("DELTAWARD_TEST_REMOTE") else ""
    out = ROOT / "benchmarks" / "results" / f"soak-{area}{suffix}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"{out.relative_to(ROOT)}: {result['passed']} passed, {result['failed']} failed")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
