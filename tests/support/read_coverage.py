"""Branch coverage of what reads tables, package by package.

Usage: `python -m tests.support.read_coverage [pytest arguments]`. Runs the unit tests and the golden tables
that read, prints how many branches of each package they take, and fails below 95 % of all of them together.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.repository import ROOT

PACKAGES = (
    "actions",
    "deletion_vectors",
    "expressions",
    "log",
    "replay",
    "scan",
    "schema",
    "snapshot",
    "table_features",
    "variants",
)
MODULES = ("storage/data_access.py", "storage/uri.py")
# The schema's rules are for writers, too, and their tests are with those of writing.
TESTS = (
    *(f"tests/unit/{name}" for name in (*PACKAGES, "storage", "table", "checkpoint", "data", "dml")),
    "tests/golden",
)
LEAST_PERCENT = 95.0


def part_of(file: str) -> str | None:
    """The package or module of the read path that a file counts for."""
    inside = file.removeprefix("delta_core/")
    if inside == file:
        return None
    return inside if inside in MODULES else next((p for p in PACKAGES if inside.startswith(f"{p}/")), None)


def branches(report: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """The branches taken and those there are, by part, of coverage's JSON report."""
    taken: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for file, found in report["files"].items():
        part = part_of(file)
        if part is not None:
            taken[part] += found["summary"]["covered_branches"]
            there[part] += found["summary"]["num_branches"]
    return {part: (taken[part], there[part]) for part in sorted(there)}


def percent(taken: int, there: int) -> float:
    """Of no branches all are taken."""
    return 100.0 * taken / there if there else 100.0


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 when too little is covered, pytest's own status when a test fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        options = ["-q", "-m", "not extra and not slow and not spark", "--cov=delta_core", "--cov-branch"]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *TESTS, *options, f"--cov-report=json:{report}", *arguments],
            cwd=ROOT,
            check=False,
        )
        if run.returncode:
            return run.returncode
        found = branches(json.loads(report.read_text()))
    total = tuple(sum(column) for column in zip(*found.values(), strict=True))
    for part, (taken, there) in (*found.items(), ("together", total)):
        print(f"{part:24} {taken:5} of {there:5} branches  {percent(taken, there):5.1f} %")
    return int(percent(*total) < LEAST_PERCENT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
