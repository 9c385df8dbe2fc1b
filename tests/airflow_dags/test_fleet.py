"""A fleet's DAG: its shape does not depend on the fleet, and one run maintains every table once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable
from delta_core.fleet.ledger import Ledger
from demo.fleet_tables import Made, make_fleet
from tests.support.airflow import AirflowHome, connection_json, run_python
from tests.support.repository import ROOT
from tests.support.soak import rounds

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

WORKER = ROOT / "tests" / "airflow" / "docs_worker.py"
DAG_FILE = """
import os
from delta_airflow.dag_factory import fleet_dag

dag = fleet_dag(os.environ["FLEET_POLICIES"], schedule=None, batches=2, approval=True)
"""
HASHED = """
import sys, time
import airflow.sdk
before = time.process_time()
from delta_airflow.assets import table_asset
from delta_airflow.dag_factory import fleet_dag
dag = fleet_dag(
    "/nowhere/policies.yaml",
    pools=["a", "b"],
    environment={"B": "1", "A": "2"},
    assets=[table_asset("/lake/orders"), table_asset("s3://lake/items")],
    approval=True,
)
seconds = time.process_time() - before
from airflow.models.serialized_dag import SerializedDagModel
from airflow.serialization.serialized_objects import DagSerialization
from airflow.serialization.serialized_objects import LazyDeserializedDAG
data = DagSerialization.to_dict(dag)
heavy = sorted({"pyspark", "pandas", "deltalake", "delta_core.fleet.control"} & set(sys.modules))
tasks = {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}
import json
print("RESULT " + json.dumps([SerializedDagModel.hash(data), tasks, heavy, seconds]))
"""


def test_the_dag_is_small_and_equal_in_every_process(airflow_database: Path, tmp_path: Path) -> None:
    found = []
    # The DAG's file is part of its hash, and code of an argument is in the current directory.
    home = AirflowHome(path=tmp_path)
    for seed in range(rounds(usual=2, soak=20)):
        environment = home.environment(PYTHONHASHSEED=str(seed + 1))
        done = run_python(HASHED, environment=environment, cwd=home.path)
        assert done.returncode == 0, done.stderr[-3000:]
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        found.append(json.loads(line.removeprefix("RESULT ")))
    assert len({made[0] for made in found}) == 1
    assert found[0][1] == {
        "discover": ["observe"],
        "observe": ["rank"],
        "rank": ["apply", "approve", "batches_1"],
        "approve": ["approved", "approved_1"],
        "batches_1": ["apply_1"],
        "approved": ["apply_approved"],
        "approved_1": ["apply_approved_1"],
        "apply": ["report"],
        "apply_1": ["report"],
        "apply_approved": ["report"],
        "apply_approved_1": ["report"],
        "report": [],
    }
    assert found[0][2] == []
    assert min(made[3] for made in found) < 0.3


@pytest.fixture(scope="module")
def ran(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Made], Any]:
    home = AirflowHome(path=tmp_path_factory.mktemp("fleet"))
    home.dags.mkdir()
    (home.dags / "fleet.py").write_text(DAG_FILE)
    shutil.copy(airflow_database, home.path / "airflow.db")
    made = make_fleet(home.path / "lake", tables=20, files=8, seed=18)
    broken = next(table for table in made if table.kind == "small_files")
    for file in (home.path / "lake" / broken.path).glob("*.parquet"):
        file.unlink()
    (home.path / "policies.yaml").write_text(
        "defaults: {compaction: {min_small_files: 4}, vacuum: {dry_run: false, min_bytes: 1}, "
        "approval: {verbs: [vacuum]}}\n"
        f"fleet: {{control_root: {home.path}/control, prefixes: [{{uri: {home.path}/lake}}]}}\n"
    )
    environment = home.environment(
        AIRFLOW_CONN_DELTAWARD_DEFAULT=connection_json(work_dir=str(home.path / "work")),
        FLEET_POLICIES=str(home.path / "policies.yaml"),
    )
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "plugins")))
    done = subprocess.run(
        [sys.executable, str(WORKER), "fleet_maintenance@ann"],
        env=environment,
        cwd=home.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stdout[-3000:] + done.stderr[-3000:]
    return home.path, made, json.loads(lines[0].removeprefix("SEEN "))["fleet_maintenance@ann"]


def test_a_run_maintains_each_table_once_and_names_the_one_that_failed(
    ran: tuple[Path, list[Made], Any],
) -> None:
    root, made, run = ran
    broken = next(table for table in made if table.kind == "small_files")
    states = run["states"]
    assert run["state"] == "failed"
    assert {name: state for name, state in states.items() if state != "success"} == {"report[-1]": "failed"}
    assert len(states) <= 3 + 2 + 2 + 4
    ledger = Ledger(control_root=f"{root}/control")
    runs = [row for row in ledger.runs() if row["plan_id"] is not None]
    failed = [row["name"] for row in runs if row["outcome"] == "failed"]
    assert [Path(name).name for name in failed] == [Path(broken.path).name]
    assert json.loads(runs[0]["provenance"])["task_id"] == "apply"
    for table in made:
        if table.kind == "small_files" and table != broken:
            history = DeltaTable(str(root / "lake" / table.path)).history()
            assert [entry.commit_info.operation for entry in history].count("OPTIMIZE") == 1
    vacuums = [row for row in runs if row["verb"] == "vacuum"]
    assert len(vacuums) == sum(table.kind == "retention_debt" for table in made)
    assert {row["outcome"] for row in vacuums} == {"succeeded"}
    # A person was asked about these verbs alone, and the ledger names the person.
    approvers = {row["verb"]: json.loads(row["provenance"]).get("approver") for row in runs}
    assert approvers == {"optimize": None, "vacuum": "ann"}
    observed = sum(value["tables"] for name, value in run["xcoms"].items() if name.startswith("observe["))
    assert observed == len(made) == len(ledger.fleet_rows())
