"""Every area's named faults, each against the smallest part of the area that must catch it.

    nice python benchmarks/soak/seeded_faults.py [--area test slow] [--fault NAME] [--seconds 3600]

The table is `tests/faults/areas.py`. A part must pass without the fault, and some test of it must fail with
it; the fault is in every Python process that the tests start (`tests/faults/inject`). A part that is skipped,
since a server or a jar is not installed, shows nothing.

Writes `benchmarks/results/soak-seeded-faults.json` after each fault, a row for each fault of each area; exits
1 unless all of them are caught.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.faults.areas import AREAS, Catch  # noqa: E402 - a program
from tests.faults.table import FAULTS  # noqa: E402
from tests.support.soak import SEED  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-seeded-faults.json"
INJECT = REPOSITORY / "tests" / "faults" / "inject"
MOST_SECONDS = 3600.0
"""One part may take so long."""

_TESTS_FAILED = 1


class Verdict(StrEnum):
    """What became of a fault."""

    CAUGHT = "caught"
    MISSED = "missed"
    NOT_APPLIED = "not applied"
    FAILS_WITHOUT = "the tests fail without it"
    NOT_RUN = "the tests are skipped"
    NO_ANSWER = "the tests did not run to their end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What became of a part of an area.

    Attributes:
        code: pytest's exit code; None when the time was over.
        passed, failed: counts of tests.
        first_failed: the first test that failed.
        applied: whether some process had the fault.
    """

    code: int | None
    passed: int
    failed: int
    first_failed: str | None
    applied: bool
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", nargs="+", choices=AREAS, default=list(AREAS), metavar="NAME")
    parser.add_argument("--fault", choices=FAULTS, help="this one alone", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no fault later than this")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    pairs = [
        (area, catch)
        for area in options.area
        for catch in AREAS[area]
        if options.fault in (None, catch.fault)
    ]
    if not pairs:
        parser.error(f"no area given has the fault {options.fault!r}")
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    without: dict[str, Run] = {}
    for area, catch in pairs:
        if time.monotonic() - began > options.seconds:
            break
        rows.append(judged(area, catch, without))
        print(f"{area:16}{rows[-1]['verdict']:28}{catch.fault}", flush=True)
        save(options.output, rows, len(pairs), time.monotonic() - began)
    counts = Counter(row["verdict"] for row in rows)
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"{options.output.name}: {len(rows)} of {len(pairs)} faults tried: {told}")
    return 0 if counts[Verdict.CAUGHT] == len(pairs) else 1


def judged(area: str, catch: Catch, without: dict[str, Run]) -> dict[str, Any]:
    """A row: what the area's tests say of one fault."""
    row: dict[str, Any] = {
        "area": area,
        "fault": catch.fault,
        "guarantee": FAULTS[catch.fault].guarantee,
        "tests": catch.tests,
    }
    sound = without.get(catch.tests)
    if sound is None:
        sound = without[catch.tests] = run(catch.tests)
    row["seconds_without"] = sound.seconds
    if sound.code == _TESTS_FAILED:
        return {**row, "verdict": Verdict.FAILS_WITHOUT, "test": sound.first_failed}
    if sound.code != 0:
        return {**row, "verdict": Verdict.NO_ANSWER}
    if not sound.passed:
        return {**row, "verdict": Verdict.NOT_RUN}
    found = run(catch.tests, catch.fault)
    row["seconds"] = found.seconds
    if found.code == _TESTS_FAILED and found.applied:
        return {**row, "verdict": Verdict.CAUGHT, "test": found.first_failed}
    if not found.applied:
        return {**row, "verdict": Verdict.NOT_APPLIED}
    return {**row, "verdict": Verdict.MISSED if found.code == 0 else Verdict.NO_ANSWER}


def run(tests: str, fault: str | None = None) -> Run:
    """Run a part of an area up to its first failure, with a fault or without one."""
    with tempfile.TemporaryDirectory(prefix="deltaward-faults-") as folder:
        report, seen = Path(folder) / "report.xml", Path(folder) / "seen"
        command = [sys.executable, "-m", "pytest", tests, "-x", "-q", "-p", "no:cacheprovider"]
        began = time.monotonic()
        code = _code(
            [*command, f"--basetemp={folder}/tests", f"--junitxml={report}"], environment_of(fault, seen)
        )
        _end_what_is_left(seen)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
        failed = [case for case in cases if {"failure", "error"} & {child.tag for child in case}]
        skipped = sum(case.find("skipped") is not None for case in cases)
        first = failed[0] if failed else None
        return Run(
            code=code,
            passed=len(cases) - len(failed) - skipped,
            failed=len(failed),
            first_failed=None if first is None else f"{first.get('file')}::{first.get('name')}",
            applied=seen.exists(),
            seconds=round(time.monotonic() - began, 1),
        )


def environment_of(fault: str | None, seen: Path) -> dict[str, str]:
    """The environment of a part of an area as `.ci/run` runs it, with a fault or without one."""
    # `make soak-AREA` asks for full counts; what must catch the faults are the samples.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DELTAWARD_TEST_") and name != "DELTAWARD_SOAK"
    }
    environment = {**kept, "DELTAWARD_SEED": SEED, "DELTAWARD_TEST_FAULT_SEEN": str(seen)}
    if fault is not None:
        path = [str(INJECT), *filter(None, [kept.get("PYTHONPATH")])]
        environment |= {"DELTAWARD_TEST_FAULT": fault, "PYTHONPATH": os.pathsep.join(path)}
    return environment


def _code(command: list[str], environment: Mapping[str, str]) -> int | None:
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _end_what_is_left(seen: Path) -> None:
    """End the processes of a run: with a fault they may outlive their tests."""
    for process in _carrying(str(seen)):
        with contextlib.suppress(psutil.Error):
            process.kill()


def _carrying(seen: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("DELTAWARD_TEST_FAULT_SEEN") == seen:
                yield process


def save(path: Path, rows: list[dict[str, Any]], wanted: int, seconds: float) -> None:
    """Write the result; a reader never sees half of it."""
    report = {
        **report_head("seeded-faults", seed=SEED, seconds=seconds),
        "faults_to_try": wanted,
        "counts": {
            area: dict(Counter(row["verdict"] for row in rows if row["area"] == area))
            for area in dict.fromkeys(row["area"] for row in rows)
        },
        "faults": rows,
    }
    head = json.dumps({**report, "faults": []}, indent=2).removesuffix("[]\n}")
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    draft = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(f"{head}[\n{lines}\n  ]\n}}\n")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
