"""A batch of a fleet that is killed at random moments: no table is done twice, and none is forgotten."""

from __future__ import annotations

import contextlib
import json
import os
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


_RUN = """
import sys
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.registry import registry
from delta_core.policies.load import load_policies

root, run_id = sys.argv[1:]
control = Control(
    registry=registry(load_policies(f"{root}/policies.yaml")), ledger=Ledger(control_root=f"{root}/control")
)
print("ready", flush=True)
sys.stdin.readline()
plan = control.plan(control.refresh(run_id=run_id), run_id=run_id)
for row in apply_plan(plan, Application(ledger=control.ledger)):
    print(row["outcome"], row["name"], row.get("error"), flush=True)
"""

_NOTEBOOK = """
import sys
from delta_core import DeltaTable
from delta_core.errors import DeltaError
from delta_core.fleet.discover import discover

uris = discover(f"{sys.argv[1]}/lake").uris
print("ready", flush=True)
sys.stdin.readline()
for uri in reversed(uris):
    try:
        metrics = DeltaTable(uri).optimize.compact()
    except DeltaError as error:
        print("lost", uri, type(error).__name__, flush=True)
    else:
        print("done", uri, metrics["numFilesRemoved"], flush=True)
"""

_COMMAND = """
import sys
from delta_core.cli.app import main

# Its worker processes import this file, too.
if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    sys.argv = ["deltaward", "fleet", "apply", "--policies", f"{sys.argv[1]}/policies.yaml", "--jobs", "2"]
    main()
"""


@pytest.mark.soak  # threads do the same in tests/unit/fleet/test_apply.py
def test_two_runs_a_command_and_a_notebook_at_once_rewrite_nothing_twice(tmp_path: Path) -> None:
    made = make_fleet(tmp_path / "lake", tables=rounds(usual=10, soak=50), files=8, seed=18)
    (tmp_path / "policies.yaml").write_text(
        "defaults: {compaction: {min_small_files: 4}, vacuum: {dry_run: false, min_bytes: 1}}\n"
        f"fleet: {{control_root: {tmp_path}/control, prefixes: [{{uri: {tmp_path}/lake}}]}}\n"
    )
    (tmp_path / "command.py").write_text(_COMMAND)
    root = str(tmp_path)
    programs = (
        ["-c", _RUN, root, "first"],
        ["-c", _RUN, root, "second"],
        [str(tmp_path / "command.py"), root],
        ["-c", _NOTEBOOK, root],
    )
    with contextlib.ExitStack() as ended:
        processes = [
            ended.enter_context(
                subprocess.Popen(
                    [sys.executable, *program],
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for program in programs
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        # Each ends by itself, long before a lease that is held for ever would have expired.
        outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    runs = Ledger(control_root=f"{tmp_path}/control").runs()
    assert {row["outcome"] for row in runs} <= {"succeeded", "not_due", "superseded"}, outputs
    done = Counter(row["uri"] for row in runs if row["verb"] == "optimize" and row["commits"])
    for table in made:
        uri = f"file://{tmp_path}/lake/{table.path}"
        rewritten: list[str] = []
        for version in range(DeltaTable(uri).version() + 1):
            log = tmp_path / "lake" / table.path / "_delta_log" / f"{version:020d}.json"
            actions = [json.loads(line) for line in log.read_text().splitlines()]
            if any(action.get("commitInfo", {}).get("operation") == "OPTIMIZE" for action in actions):
                rewritten += [action["remove"]["path"] for action in actions if "remove" in action]
                assert done[uri] <= 1, f"{uri}: {runs}"
        assert len(rewritten) == len(set(rewritten)), uri
        optimizes = _operations(uri)["OPTIMIZE"]
        assert optimizes == (table.kind == "small_files"), f"{uri}: {optimizes}"
