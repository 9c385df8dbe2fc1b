"""delta-rs's own Python tests, with `delta_core.deltalake` in place of `deltalake`.

    nice python benchmarks/soak/delta_rs_suite.py FOLDER

FOLDER is `python/` of a checkout of delta-rs 1.6 (with `crates/test/tests/data` beside it). The tests run
twice: with the package, and with `deltalake_adapter.py` under its name. Counted are the tests that the
package passes. Writes `benchmarks/results/soak-delta-rs-suite.json`, with the reason of each test that is
left, from `deltalake_reasons.json`; exits with 1 when fewer than 340 of 379 pass, or a test has no reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.support.soak_report import report_head  # noqa: E402 - a program

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-delta-rs-suite.json"
ADAPTER = Path(__file__).with_name("deltalake_adapter.py")
REASONS = Path(__file__).with_name("deltalake_reasons.json")
MARKS = "not integration and not benchmark and not no_pyarrow"
LEAST = 340 / 379


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tests", nargs="*", default=["tests"], help="paths or ids below the folder")
    parser.add_argument("--passed", type=Path, help="a list of the tests that the package passes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print the messages of the tests that are left")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaward-soak-") as scratch:
        if options.passed:
            theirs = dict.fromkeys(options.passed.read_text().splitlines(), "")
        else:
            theirs = run_tests(options, Path(scratch), adapter=False)
            theirs = {test: message for test, message in theirs.items() if not message}
        ours = run_tests(options, Path(scratch), adapter=True)
    ours = with_ids_of(theirs, ours)
    counted = sorted(theirs)
    left = {test: ours.get(test, "did not run") for test in counted if ours.get(test, "did not run")}
    reasons = json.loads(REASONS.read_text()) if REASONS.exists() else {}
    unexplained = [test for test in left if reason_of(test, reasons) is None]
    report = {
        **report_head("delta-rs-suite", seed=None, seconds=time.monotonic() - began),
        "command": "python benchmarks/soak/delta_rs_suite.py FOLDER",
        "passed_by_deltalake": len(counted),
        "passed": len(counted) - len(left),
        "functions": [len(functions(counted) - functions(left)), len(functions(counted))],
        "by_file": by_file(counted, left),
        "left": {test: reason_of(test, reasons) or message for test, message in left.items()},
        "unexplained": unexplained,
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    if options.show:
        for test, message in left.items():
            print(f"{test}\n    {message}")
    print(f"{report['passed']} of {len(counted)} tests pass; {len(unexplained)} of the others have no reason")
    return 1 if unexplained or report["passed"] < LEAST * len(counted) else 0


def run_tests(options: argparse.Namespace, scratch: Path, *, adapter: bool) -> dict[str, str]:
    """The outcome of each test that ran: an empty string when it passed, else the message."""
    place = scratch / ("ours" if adapter else "theirs")
    stub = place / "azure" / "storage" / "blob"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()  # conftest.py imports it, and only its fixtures for Azure use it
    if adapter:
        (place / "deltalake").mkdir()
        (place / "deltalake" / "__init__.py").write_text(ADAPTER.read_text())
    report = place / "report.xml"
    command = [
        *(sys.executable, "-m", "pytest", *options.tests, "-q", "--no-header", "-o", "addopts="),
        *("-p", "no:cacheprovider", "-n", str(options.workers), "--timeout", "60", "-m", MARKS),
        *("--tb", "line", f"--junit-xml={report}"),
    ]
    paths = [str(place), *([str(REPOSITORY)] if adapter else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(place)}
    subprocess.run(command, cwd=options.folder, env=environment, stdout=subprocess.DEVNULL, check=False)
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("classname", "").replace(".", "/") + ".py::" + case.get("name", "")
        faults = [*case.findall("failure"), *case.findall("error")]
        if case.find("skipped") is None:
            outcomes[name] = " ".join(faults[0].get("message", "failed").split())[:400] if faults else ""
    return outcomes


def with_ids_of(theirs: dict[str, str], ours: dict[str, str]) -> dict[str, str]:
    """Our outcomes by the ids of the package's run: objects as parameters may have other names there."""
    named = dict(ours)
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for side, outcomes in enumerate((theirs, ours)):
        for test in outcomes:
            groups.setdefault(test.partition("[")[0], ([], []))[side].append(test)
    for expected, found in groups.values():
        missing = [test for test in expected if test not in ours]
        extra = [test for test in found if test not in theirs]
        if len(missing) == len(extra):
            named |= {test: ours[other] for test, other in zip(missing, extra, strict=True)}
    return named


def functions(tests: Iterable[str]) -> set[str]:
    """The test functions, without parameters."""
    return {test.partition("[")[0] for test in tests}


def by_file(counted: list[str], left: dict[str, str]) -> dict[str, list[int]]:
    """For each file the number of tests that pass, and of those that the package passes."""
    counts: dict[str, list[int]] = {}
    for test in counted:
        pair = counts.setdefault(test.partition("::")[0], [0, 0])
        pair[0] += test not in left
        pair[1] += 1
    return counts


def reason_of(test: str, reasons: dict[str, Any]) -> str | None:
    """The reason of a test: that of its name, with or without its parameters."""
    name = test.partition("::")[2]
    found = reasons.get(name) or reasons.get(name.partition("[")[0])
    return None if found is None else str(found)


if __name__ == "__main__":
    sys.exit(main())
