"""The DAG folder as Airflow parses it, once for all tests here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.airflow import AirflowHome, airflow_database, airflow_home, run_python
from tests.support.example_runs import shared_engine
from tests.support.repository import ROOT

__all__ = ["airflow_database", "airflow_home"]

DAGS = ROOT / "dags"

# A DAG file must not touch a table, the network or a process when it is parsed: audit hooks see all three.
PARSE = f"""
import json, sys
events = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and "_delta_log" in arguments[0]:
        events.append([event, arguments[0]])
    elif event in ("socket.connect", "subprocess.Popen", "os.posix_spawn") and watching:
        events.append([event, repr(arguments)[:200]])
watching = False
from airflow.dag_processing.dagbag import DagBag
sys.addaudithook(watch)
watching = True
bag = DagBag({str(DAGS)!r})
watching = False
heavy = sorted({{"pyspark", "pandas", "great_expectations", "deltalake"}} & set(sys.modules))
print("RESULT " + json.dumps({{
    "errors": bag.import_errors,
    "events": events,
    "heavy": heavy,
    "dags": {{
        dag.dag_id: {{
            "tasks": {{task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}},
            "catchup": dag.catchup,
            "max_active_runs": dag.max_active_runs,
            "params": {{name: dag.params.get_param(name).schema for name in dag.params}},
            "doc": bool(dag.doc_md),
            "retries": {{task.task_id: task.retries for task in dag.tasks}},
            "policies": {{task.task_id: type(task.retry_policy).__name__ for task in dag.tasks}},
            "pools": {{task.task_id: task.pool for task in dag.tasks}},
            "callbacks": {{task.task_id: bool(task.has_on_failure_callback) for task in dag.tasks}},
            "connections": {{
                task.task_id: (
                    task.partial_kwargs.get("conn_id") if hasattr(task, "partial_kwargs") else task.conn_id
                )
                for task in dag.tasks
                if "conn_id" in task.template_fields
            }},
            "leases": {{
                task.task_id: getattr(task, "lease", None) for task in dag.tasks if hasattr(task, "lease")
            }},
        }}
        for dag in bag.dags.values()
    }},
}}))
"""


@pytest.fixture(scope="session")
def parsed(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    home = AirflowHome(path=tmp_path_factory.mktemp("dags"))
    done = run_python(PARSE, environment=home.environment(), cwd=home.path)
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(line.removeprefix("RESULT "))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of the runs' connection: starting Spark anew for each task is what would take long."""
    with shared_engine(tmp_path_factory.mktemp("engine")) as extra:
        yield extra
