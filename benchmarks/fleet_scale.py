"""`python -m benchmarks.fleet_scale`: the scale of a fleet, on generated tables on the local disk.

Measures the observation of each table against opening it with deltalake, in paired rounds; an unchanged
second observation; the quality of the ranking under a budget; predicted against actual work; and
`fleet status` as a whole process. The results are printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import deltalake

from benchmarks import fleet_ranking
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.observe import Before, observe_fleet
from delta_core.fleet.registry import registry
from delta_core.policies.load import parse_policies
from delta_core.storage.request_meter import METER
from demo.fleet_tables import make_fleet


def main() -> int:
    options = _options()
    root = Path(tempfile.mkdtemp(prefix="fleet-", dir=options.directory))
    try:
        made = make_fleet(root / "lake", tables=options.tables, files=options.files)
        result: dict[str, Any] = {"tables": len(made), "files": options.files}
        result["observe"] = observation(root, options.rounds)
        result["status"] = status(root, options.rounds)
        result["ranking"] = fleet_ranking.measure(
            root / "zipf", tables=min(300, options.tables), seed=options.seed
        )
        result["predictions"] = predictions(root)
        print(json.dumps(result, indent=2))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--directory", type=Path, default=None, help="where the tables are made")
    return parser.parse_args()


def _control(root: Path) -> Control:
    policies = parse_policies(
        "defaults: {checkpoint: {interval: 10}, vacuum: {dry_run: false, min_bytes: 1}}\n"
        f"fleet: {{control_root: {root}/control, prefixes: [{{uri: {root}/lake}}]}}"
    )
    return Control(registry=registry(policies), ledger=Ledger(control_root=f"{root}/control"))


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - wall, time.process_time() - cpu


def observation(root: Path, rounds: int) -> dict[str, Any]:
    """The first observation against deltalake, in paired rounds, and an unchanged second one."""
    tables = _control(root).registry.tables
    pairs = []
    for _ in range(rounds):
        theirs = _timed(lambda: [deltalake.DeltaTable(table.uri) for table in tables])
        ours = _timed(lambda: list(observe_fleet(tables, before={})))
        pairs.append((ours, theirs))
    before = {item.table.uri: Before(seen=item.seen) for item in observe_fleet(tables, before={})}
    requests = METER.totals().requests
    again = _timed(lambda: list(observe_fleet(tables, before=before)))
    listings = METER.totals().requests - requests
    return {
        "wall_ratio": round(median(ours[0] / theirs[0] for ours, theirs in pairs), 2),
        "cpu_ratio": round(median(ours[1] / theirs[1] for ours, theirs in pairs), 2),
        "first_wall_seconds": round(median(ours[0] for ours, _ in pairs), 2),
        "first_cpu_seconds": round(median(ours[1] for ours, _ in pairs), 2),
        "unchanged_wall_seconds": round(again[0], 2),
        "unchanged_requests_per_table": round(listings / len(tables), 3),
    }


def status(root: Path, rounds: int) -> dict[str, Any]:
    """`fleet status` as a whole process."""
    control = _control(root)
    control.refresh(run_id="status")
    policies = root / "policies.yaml"
    policies.write_text(f"fleet: {{control_root: {root}/control, prefixes: [{{uri: {root}/lake}}]}}\n")
    program = [sys.executable, "-c", "from delta_core.cli.app import main; main()", "fleet", "status"]
    walls = []
    for _ in range(rounds):
        began = time.monotonic()
        done = subprocess.run(
            [*program, "--policies", str(policies)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        walls.append(time.monotonic() - began)
        assert done.returncode == 0
    return {"tables": len(control.registry.tables), "wall_seconds": round(median(walls), 2)}


def predictions(root: Path) -> dict[str, Any]:
    """The predictions of a third run, after two runs over a third of the tables each."""
    result: dict[str, Any] = {}
    for run in range(3):
        control = _control(root)
        rows = control.refresh(run_id=f"run{run}")
        plan = control.plan(rows, run_id=f"run{run}")
        part = plan.batch(0, 3 - run)
        done = [
            row
            for row in apply_plan(part, Application(ledger=control.ledger))
            if row["outcome"] == "succeeded"
        ]
        exact = [
            abs((row["actual_files"] or 0) - row["predicted_files"]) <= 0.05 * max(1, row["predicted_files"])
            and abs((row["actual_bytes"] or 0) - row["predicted_bytes"])
            <= 0.05 * max(1, row["predicted_bytes"])
            for row in done
        ]
        near = [abs(row["predicted_cpu_seconds"] / row["cpu_seconds"] - 1) <= 0.3 for row in done]
        total = {
            verb: sum(row["cpu_seconds"] for row in done if row["verb"] == verb)
            / sum(row["predicted_cpu_seconds"] for row in done if row["verb"] == verb)
            for verb in sorted({row["verb"] for row in done})
        }
        result[f"run_{run + 1}"] = {
            "verbs": len(done),
            "files_and_bytes_within_5_percent": round(sum(exact) / len(exact), 3),
            "actual_over_predicted_cpu": {verb: round(value, 2) for verb, value in total.items()},
            "verbs_with_cpu_within_30_percent": round(sum(near) / len(near), 3),
        }
    return result


if __name__ == "__main__":
    raise SystemExit(main())
