"""The measurements of a fleet, one after the other; the result is `benchmarks/results/soak-fleet.json`.

    nice python benchmarks/soak/fleet.py [--only observe page] [--tables 200]

`observe`, `ranking`, `predictions`, `store`, `page`, `policies` and `scheduler` measure. `tests` runs tests
of a fleet at full counts: kills, processes at once, a month, the hash of the DAG. Sections that were run
before keep their results. Exits with 1 when a limit is exceeded; ratios need a machine without other work.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "plugins")]

from benchmarks import fleet_page, fleet_ranking, fleet_scale, fleet_scheduler, fleet_store  # noqa: E402 - a program
from delta_core.fleet.registry import registry_of  # noqa: E402
from delta_core.policies.load import load_policies  # noqa: E402
from demo.fleet_tables import make_fleet  # noqa: E402
from tests.support.soak_report import report_head  # noqa: E402

RESULT = REPOSITORY / "benchmarks" / "results" / "soak-fleet.json"

_TESTS = (
    "tests/unit/fleet/test_month.py",
    "tests/e2e/test_fleet_processes.py",
    "tests/airflow_dags/test_fleet.py",
)
_PARSE = """
import json, sys, time
import airflow.sdk
before = time.process_time()
from delta_airflow.dag_factory import fleet_dag
dag = fleet_dag(sys.argv[1])
print(time.process_time() - before)
"""

Section = Callable[[argparse.Namespace], dict[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-browser", action="store_true")
    parser.add_argument("--directory", type=Path, default=None, help="where the tables are made")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(options.output.read_text()) if options.output.exists() else {}
    sections: dict[str, Any] = known.get("sections", {})
    for name in options.only:
        began = time.monotonic()
        try:
            outcome = SECTIONS[name](options)
        except Exception as error:
            outcome = {"exceeded": [f"{type(error).__name__}: {error}"[-2000:]]}
        head = report_head("fleet", seed=30, seconds=time.monotonic() - began)
        sections[name] = {**head, **outcome}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps({"area": "fleet", "sections": sections}, indent=2) + "\n")
        print(f"{name}: {outcome.get('exceeded') or 'within its limits'}", flush=True)
    return 1 if any(sections[name].get("exceeded") for name in options.only) else 0


def _judged(result: dict[str, Any], *limits: tuple[str, float | None, float]) -> dict[str, Any]:
    """The result with the names of the figures that are above their limits."""
    exceeded = [
        f"{name}: {value}, at most {limit}" for name, value, limit in limits if value is None or value > limit
    ]
    return {**result, "exceeded": exceeded}


def _observe(options: argparse.Namespace) -> dict[str, Any]:
    root = Path(tempfile.mkdtemp(prefix="fleet-observe-", dir=options.directory))
    try:
        made = make_fleet(root / "lake", tables=options.tables, files=options.files)
        found = fleet_scale.observation(root, options.rounds)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return _judged(
        {"tables": len(made), **found},
        ("wall_ratio", found["wall_ratio"], 2.0),
        ("unchanged_requests_per_table", found["unchanged_requests_per_table"], 1.0),
        ("unchanged_wall_seconds", found["unchanged_wall_seconds"], 15.0),
    )


def _ranking(options: argparse.Namespace) -> dict[str, Any]:
    root = Path(tempfile.mkdtemp(prefix="fleet-ranking-", dir=options.directory))
    try:
        found = {
            "measured": fleet_ranking.measure(root, tables=min(300, options.tables), seed=30),
            "modelled": fleet_ranking.modelled(range(30, 55)),
        }
    finally:
        shutil.rmtree(root, ignore_errors=True)
    measured = found["measured"]
    return _judged(
        found,
        ("3 / over_random", 3 / measured["over_random"], 1.0),
        ("1.2 / over_most_small_files_first", 1.2 / measured["over_most_small_files_first"], 1.0),
    )


def _predictions(options: argparse.Namespace) -> dict[str, Any]:
    root = Path(tempfile.mkdtemp(prefix="fleet-predictions-", dir=options.directory))
    try:
        make_fleet(root / "lake", tables=options.tables, files=options.files, usual_checkpoints=True)
        found = fleet_scale.predictions(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    exact = [run["files_and_bytes_within_5_percent"] for run in found.values()]
    ratios = found["run_3"]["actual_over_predicted_cpu"].values()
    return _judged(
        found,
        ("0.95 / files_and_bytes_within_5_percent", 0.95 / max(1e-9, min(exact)), 1.0),
        ("largest error of the cost of a verb", max(abs(1 / ratio - 1) for ratio in ratios), 0.3),
    )


def _store(options: argparse.Namespace) -> dict[str, Any]:
    found = fleet_store.measure(
        tables=options.tables,
        files=options.files,
        milliseconds=20,
        maintained=min(20, options.tables // 4),
        directory=options.directory,
    )
    return _judged(
        found,
        ("first.requests_per_table", found["first"]["requests_per_table"], 4.0),
        ("first.seconds", found["first"]["seconds"], 180.0),
        ("unchanged.requests_per_table", found["unchanged"]["requests_per_table"], 1.0),
        ("unreadable", found["unreadable"], 0),
    )


def _page(options: argparse.Namespace) -> dict[str, Any]:
    found = fleet_page.measure(
        tables=round(options.tables * 2.5),
        rounds=options.rounds,
        browser=not options.without_browser,
        directory=options.directory,
    )
    return _judged(
        found,
        ("status_seconds", found["status_seconds"]["median"], 1.5),
        ("page_bytes", found["page_bytes"], 5 << 20),
        ("differences", len(found["differences"]), 0),
    )


def _policies(options: argparse.Namespace) -> dict[str, Any]:
    """A policy file of 4 MiB: the time to read it, to resolve its tables, and to parse a DAG that uses it."""
    root = Path(tempfile.mkdtemp(prefix="fleet-policies-", dir=options.directory))
    try:
        path = root / "policies.yaml"
        lines = ["defaults: {compaction: {min_small_files: 4}}", "tables:"]
        size = sum(len(line) + 1 for line in lines)
        for number in range(10**6):
            line = f"  table_{number:06d}: {{uri: s3://lake/schema_{number % 100:02d}/table_{number:06d}}}"
            size += len(line) + 1
            if size > 4 << 20:
                break
            lines.append(line)
        path.write_text("\n".join(lines) + "\n")
        began = time.monotonic()
        policies = load_policies(path)
        read = time.monotonic() - began
        began = time.monotonic()
        tables = registry_of(policies, []).tables
        resolved = time.monotonic() - began
        environment = {
            **os.environ,
            "AIRFLOW_HOME": str(root / "airflow"),
            "PYTHONPATH": os.pathsep.join(sys.path[:2]),
        }
        parses = [
            float(
                subprocess.run(
                    [sys.executable, "-c", _PARSE, str(path)],
                    env=environment,
                    cwd=root,
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout.split()[-1]
            )
            for _ in range(options.rounds)
        ]
        result = {
            "bytes": path.stat().st_size,
            "tables": len(tables),
            "read_seconds": round(read, 2),
            "resolve_seconds": round(resolved, 2),
            "parse_milliseconds": [round(seconds * 1000) for seconds in parses],
        }
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return _judged(result, ("parse_milliseconds", sorted(parses)[len(parses) // 2] * 1000, 300))


def _tests(options: argparse.Namespace) -> dict[str, Any]:
    report = REPOSITORY / ".ci" / "out" / "soak-fleet.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *_TESTS, "-q", f"--junitxml={report}", "-o", "timeout=0"],
        cwd=REPOSITORY,
        env={**os.environ, "DELTAWARD_SOAK": "1"},
        check=False,
    )
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    result = {
        "passed": len(cases) - len(failed),
        "seconds": {case.get("name"): round(float(case.get("time") or 0), 1) for case in cases},
    }
    names = [f"{case.get('classname')}::{case.get('name')}" for case in failed]
    return {**result, "exceeded": names or (["pytest failed"] if done.returncode else [])}


def _scheduler(options: argparse.Namespace) -> dict[str, Any]:
    """A run with a fifth of the tables due, and a run over more tables with nothing due."""
    shared: dict[str, Any] = {
        "files": options.files,
        "seconds": 1800,
        "directory": options.directory,
    }
    due = fleet_scheduler.measure(tables=options.tables, due=options.tables // 5, batches=32, **shared)
    # By default, a DAG has eight batches.
    nothing = fleet_scheduler.measure(tables=round(options.tables * 2.5), due=0, batches=8, **shared)
    return _judged(
        {"due": due, "nothing_due": nothing},
        ("due.task_instances", due["task_instances"], 80),
        ("due.seconds", due["seconds"], 900),
        ("nothing_due.seconds", nothing["seconds"], 360),
        ("runs without success", sum(run["state"] != "success" for run in (due, nothing)), 0),
    )


SECTIONS: dict[str, Section] = {
    "observe": _observe,
    "ranking": _ranking,
    "predictions": _predictions,
    "store": _store,
    "page": _page,
    "policies": _policies,
    "tests": _tests,
    "scheduler": _scheduler,
}


if __name__ == "__main__":
    sys.exit(main())
