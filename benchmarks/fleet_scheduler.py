"""`python -m benchmarks.fleet_scheduler`: a `fleet_dag` in a real Airflow on SQLite with LocalExecutor.

Starts Airflow's services on loopback ports, triggers one run over generated tables, and tells its state, its
task instances and its seconds. `--due` of the tables have something due. Prints JSON.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from delta_core.fleet.ledger import Ledger
from demo.airflow_api import AirflowApi
from demo.environment import base_environment, service_settings, write_login
from demo.fleet_tables import make_fleet
from demo.layout import Layout
from demo.processes import free_port, stop_all
from demo.services import migrate, start_airflow, wait_for_airflow
from tests.support.airflow import connection_json

_DAG = """
from delta_airflow.dag_factory import fleet_dag

dag = fleet_dag({policies!r}, schedule=None, batches={batches})
"""
_DAG_ID = "fleet_maintenance"
_FINAL = ("success", "failed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--due", type=int, default=400)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--batches", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=1800, help="the longest wait for the run")
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    result = measure(
        tables=options.tables,
        due=options.due,
        files=options.files,
        batches=options.batches,
        seconds=options.seconds,
        directory=options.directory,
    )
    print(json.dumps(result, indent=2))
    return 0 if result["state"] == "success" else 1


def measure(
    *, tables: int, due: int, files: int, batches: int, seconds: float, directory: Path | None = None
) -> dict[str, Any]:
    """One run of the DAG over so many tables."""
    home = Path(tempfile.mkdtemp(prefix="fleet-scheduler-", dir=directory))
    layout = Layout(home=home)
    layout.make()
    try:
        shares = {"healthy": tables - due, "small_files": due}
        made = make_fleet(home / "lake", tables=tables, files=files, kinds=shares)
        policies = home / "policies.yaml"
        policies.write_text(
            "defaults: {compaction: {min_small_files: 4}, checkpoint: {enabled: false}, "
            "vacuum: {enabled: false}}\n"
            f"fleet: {{control_root: {home}/control, prefixes: [{{uri: {home}/lake}}]}}\n"
        )
        dags = home / "dags"
        dags.mkdir()
        (dags / "fleet.py").write_text(_DAG.format(policies=str(policies), batches=batches))
        run, instances = _run(layout, dags, seconds)
        runs = Ledger(control_root=f"{home}/control").runs()
        return {
            "tables": len(made),
            "due": sum(table.kind == "small_files" for table in made),
            "state": run["state"],
            "seconds": round(_seconds(run), 1),
            "task_instances": len(instances),
            "by_task": dict(Counter(instance["task_id"] for instance in instances)),
            "slowest_seconds": round(max((item["duration"] or 0 for item in instances), default=0), 1),
            "outcomes": dict(Counter(row["outcome"] for row in runs)),
            "observed": len(Ledger(control_root=f"{home}/control").fleet_rows(("uri", "name"))),
        }
    finally:
        stop_all(layout)
        shutil.rmtree(home, ignore_errors=True)


def _run(layout: Layout, dags: Path, seconds: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    port = free_port()
    login = write_login(layout, port=port)
    environment = {
        **base_environment(layout, connect_url=None, dags=dags),
        **service_settings(layout, port=port),
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW_CONN_DELTAWARD_DEFAULT": connection_json(work_dir=str(layout.runs)),
    }
    migrate(layout, environment=environment)
    services = start_airflow(layout, environment=environment, triggerer=False)
    api = wait_for_airflow(services, login, dag_ids=[_DAG_ID], seconds=300, report=lambda line: None)
    run_id = "measured"
    api.trigger(_DAG_ID, run_id=run_id, conf={})
    deadline = time.monotonic() + seconds
    while (run := api.run(_DAG_ID, run_id))["state"] not in _FINAL and time.monotonic() < deadline:
        for service in services.values():
            service.require_alive()
        time.sleep(2)
    return run, _instances(api, run_id)


def _instances(api: AirflowApi, run_id: str) -> list[dict[str, Any]]:
    """The task instances of the run; a run of this DAG has fewer than a page of them for each task."""
    return api.task_instances(_DAG_ID, run_id)


def _seconds(run: dict[str, Any]) -> float:
    if not run["end_date"]:
        return float("nan")
    begin, end = (datetime.datetime.fromisoformat(run[name]) for name in ("start_date", "end_date"))
    return (end - begin).total_seconds()


if __name__ == "__main__":
    raise SystemExit(main())
