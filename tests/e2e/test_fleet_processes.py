"""A batch of a fleet that is killed at random moments: no table is done twice, and none is forgotten."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from delta_core import DeltaTable
from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.plan import FleetPlan
from delta_core.fleet.registry import registry
from delta_core.policies.load import parse_policies
from demo.fleet_tables import make_fleet
from tests.support.repository import ROOT
from tests.support.soak import rounds

pytestmark = pytest.mark.e2e

_BATCH = """
import json, sys
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.plan import FleetPlan
from delta_core.jobs.context import JobContext

root = sys.argv[1]
ledger = Ledger(control_root=f"{root}/control")
plan = FleetPlan.from_json(json.loads(open(f"{root}/plan.json").read()))
print("ready", flush=True)
for row in apply_plan(plan, Application(ledger=ledger, context=JobContext(lease_ttl_seconds=2))):
    print(row["uri"], row["verb"], row["outcome"], flush=True)
"""


def _operations(uri: str) -> Counter[str | None]:
    return Counter(entry.commit_info.operation for entry in DeltaTable(uri).history())


def test_a_batch_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    seed = time.time_ns()
    chance = random.Random(seed)
    made = tmp_path / "made"
    make_fleet(made, tables=14, files=8, seed=18)
    for number in range(rounds(usual=1, soak=5)):
        root = tmp_path / f"round_{number}"
        shutil.copytree(made, root / "lake")
        policies = parse_policies(
            "defaults: {compaction: {min_small_files: 4}, vacuum: {dry_run: false, min_bytes: 1}}\n"
            f"fleet: {{control_root: {root}/control, prefixes: [{{uri: {root}/lake}}]}}"
        )
        ledger = Ledger(control_root=f"{root}/control")
        control = Control(registry=registry(policies), ledger=ledger)
        found = control.refresh(run_id="r")
        plan = control.plan(found, run_id="r")
        before = {uri: _operations(uri) for uri in found}
        (root / "plan.json").write_text(json.dumps(plan.to_json()))
        for _ in range(4):
            _killed_after(root, chance.random() * 1.2)
        finished = _process(root)
        output, _ = finished.communicate(timeout=120)
        assert finished.returncode == 0, f"seed {seed}: {output}"
        _check(plan, ledger, before, seed)


def _process(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _BATCH, str(root)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _killed_after(root: Path, seconds: float) -> None:
    with _process(root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.kill()


def _check(plan: FleetPlan, ledger: Ledger, before: dict[str, Counter[str | None]], seed: int) -> None:
    runs = [row for row in ledger.runs() if row["plan_id"] == plan.plan_id]
    done = Counter((row["uri"], row["verb"]) for row in runs)
    # Each verb of the plan has exactly one row: none is forgotten, and none is there twice.
    assert done == Counter((entry.uri, entry.verb) for entry in plan.entries), f"seed {seed}"
    assert {row["outcome"] for row in runs} <= {"succeeded", "not_due"}, f"seed {seed}"
    for entry in plan.entries:
        if entry.verb != "optimize":
            continue
        made = _operations(entry.uri) - before[entry.uri]
        assert made["OPTIMIZE"] == 1, f"seed {seed}: {entry.uri} {made}"
        commits = [row["commits"] for row in runs if (row["uri"], row["verb"]) == (entry.uri, "optimize")]
        assert [len(versions) for versions in commits] == [1], f"seed {seed}: {entry.uri}"
