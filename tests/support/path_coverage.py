"""Branch coverage of what reads tables, or of what writes them, package by package.

Usage: `python -m tests.support.path_coverage read|write [pytest arguments]`. Runs the quick tests of that
path, prints how many branches of each package they take and which errors they never raise, and fails below
95 % of all branches together. Of what writes, each error must be raised, but for those that are listed with a
reason in `UNRAISED`.
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

UNRAISED: Mapping[str, str] = {}
"""Errors of writing that no quick test raises, by file, function and error, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePath:
    """What of `delta_core` counts, and the tests that are to reach it.

    Attributes:
        parts: packages and modules below `delta_core`; the first that a file belongs to has it.
        tests: folders of the quick tests.
        raises_all: whether an error that is never raised, and not in `UNRAISED`, is a failure.
    """

    parts: tuple[str, ...]
    tests: tuple[str, ...]
    raises_all: bool = False

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
        raises_all=True,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unraised:
    """A statement that makes and raises an error and that no test has reached.

    Attributes:
        where: file and function, and the error's name: what stays when lines move.
    """

    where: str
    line: int


def never_raised(report: Mapping[str, Any], path: CodePath) -> Iterator[Unraised]:
    """The statements that make and raise an error and that no test has reached.

    An `AssertionError` is no error that anybody meets: it says that a line is not reached.
    """
    for file, found in sorted(report["files"].items()):
        if path.part_of(file) is None:
            continue
        missing = set(found["missing_lines"])
        for function, node in _raises(ast.parse((ROOT / file).read_text()), ""):
            if node.lineno in missing and (error := _error_made(node.exc)) not in ("", "AssertionError"):
                yield Unraised(where=f"{file}: {function}: {error}", line=node.lineno)


def _raises(tree: ast.AST, function: str) -> Iterator[tuple[str, ast.Raise]]:
    """Each `raise` with the innermost function that it is in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise):
            yield function, node
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield from _raises(node, inner)


def unexpected(found: Sequence[Unraised], known: Mapping[str, str]) -> list[str]:
    """What is wrong with a list of errors that are never raised: what it lacks, and what it has too much."""
    there = {one.where for one in found}
    return [
        *(f"{one.where} (line {one.line})" for one in found if one.where not in known),
        *(
            f"{where} is raised, or is no more: take it from the list"
            for where in known
            if where not in there
        ),
    ]


def _error_made(raised: ast.expr | None) -> str:
    """The name of what a statement makes to raise it; empty where it passes an error on."""
    made = raised.func if isinstance(raised, ast.Call) else raised
    return "" if made is None else ast.unparse(made)


def percent(taken: int, there: int) -> float:
    """Of no branches all are taken."""
    return 100.0 * taken / there if there else 100.0


def main(name: str, *arguments: str) -> int:
    """Measure and print; 1 when too little is covered or raised, pytest's own status when a test fails."""
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
    unraised = list(never_raised(report, path))
    if path.raises_all:
        wrong = unexpected(unraised, UNRAISED)
        _print_all(("not raised by any test, and not listed with a reason:", *wrong))
    else:
        wrong = []
        _print_all(("not raised by any test:", *(f"{one.where} (line {one.line})" for one in unraised)))
    found = branches(report, path)
    total = tuple(sum(column) for column in zip(*found.values(), strict=True))
    for part, (taken, there) in (*found.items(), ("together", total)):
        print(f"{part:24} {taken:5} of {there:5} branches  {percent(taken, there):5.1f} %")
    return int(percent(*total) < LEAST_PERCENT or bool(wrong))


def _print_all(lines: Sequence[str]) -> None:
    print(*lines, sep="\n  ")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
