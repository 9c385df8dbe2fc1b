"""Branch coverage of what reads tables, or of what writes them, package by package.

Usage: `python -m tests.support.path_coverage read|write [pytest arguments]`. Runs the quick tests of that
path, prints how many branches of each package they take and which errors they never raise, and fails below
95 % of all branches together.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.repository import ROOT

LEAST_PERCENT = 95.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePath:
    """What of `delta_core` counts, and the tests that are to reach it.

    Attributes:
        parts: packages and modules below `delta_core`; the first that a file belongs to has it.
        tests: folders of the quick tests.
    """

    parts: tuple[str, ...]
    tests: tuple[str, ...]

    def part_of(self, file: str) -> str | None:
        """The part that a file counts for."""
        inside = file.removeprefix("delta_core/")
        if inside == file:
            return None
        return next((part for part in self.parts if inside == part or inside.startswith(f"{part}/")), None)


_READING = (
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
_WRITING = ("checkpoint", "data", "deletion_vectors", "dml", "table_features", "transaction")
_VERBS = (
    "backfill",
    "clone",
    "clustering",
    "compaction",
    "convert",
    "purge",
    "restore",
    "rewriting",
    "vacuum",
)

PATHS: Mapping[str, CodePath] = {
    "read": CodePath(
        parts=(*_READING, "storage/data_access.py", "storage/uri.py"),
        # The schema's rules are for writers, too, and their tests are with those of writing.
        tests=(
            *(f"tests/unit/{name}" for name in (*_READING, "storage", "table", "checkpoint", "data", "dml")),
            "tests/golden",
        ),
    ),
    "write": CodePath(
        parts=(*_WRITING, *(f"maintenance/{verb}" for verb in _VERBS)),
        tests=tuple(f"tests/unit/{name}" for name in (*_WRITING, "maintenance", "schema", "table")),
    ),
}


def branches(report: Mapping[str, Any], path: CodePath) -> dict[str, tuple[int, int]]:
    """The branches taken and those there are, by part, of coverage's JSON report."""
    taken: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for file, found in report["files"].items():
        part = path.part_of(file)
        if part is not None:
            taken[part] += found["summary"]["covered_branches"]
            there[part] += found["summary"]["num_branches"]
    return {part: (taken[part], there[part]) for part in sorted(there)}


def never_raised(report: Mapping[str, Any], path: CodePath) -> Iterator[str]:
    """The lines that make and raise an error and that no test has reached, as `file:line`."""
    for file, found in sorted(report["files"].items()):
        if path.part_of(file) is None:
            continue
        missing = set(found["missing_lines"])
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None and node.lineno in missing:
                yield f"{file}:{node.lineno}"


def percent(taken: int, there: int) -> float:
    """Of no branches all are taken."""
    return 100.0 * taken / there if there else 100.0


def main(name: str, *arguments: str) -> int:
    """Measure and print; 1 when too little is covered, pytest's own status when a test fails."""
    path = PATHS[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        options = ["-q", "-m", "not extra and not slow and not spark", "--cov=delta_core", "--cov-branch"]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *path.tests, *options, f"--cov-report=json:{file}", *arguments],
            cwd=ROOT,
            check=False,
            # Of its own: two measurements at once would end with each other's.
            env=os.environ | {"COVERAGE_FILE": str(Path(folder) / "coverage")},
        )
        if run.returncode:
            return run.returncode
        report = json.loads(file.read_text())
    _print_all(("not raised by any test:", *never_raised(report, path)))
    found = branches(report, path)
    total = tuple(sum(column) for column in zip(*found.values(), strict=True))
    for part, (taken, there) in (*found.items(), ("together", total)):
        print(f"{part:24} {taken:5} of {there:5} branches  {percent(taken, there):5.1f} %")
    return int(percent(*total) < LEAST_PERCENT)


def _print_all(lines: Sequence[str]) -> None:
    print(*lines, sep="\n  ")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
