"""Every DAG that the documents show, as a reader would use it: one file each in a DAG folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.settings import EXTRA_NAMES
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.merge import DeltaMergeOperator
from spark_jobs.job_kinds import LOAD, MERGE
from tests.support.airflow import AirflowHome
from tests.support.documented_dags import DOCUMENT, connection, examples, run_examples, write_examples
from tests.support.repository import ROOT, code_blocks
from tests.support.soak import SOAKING

Runner = Callable[..., dict[str, Any]]


@pytest.fixture
def run_dags(airflow_home: AirflowHome, tmp_path: Path) -> Runner:
    """Runs some of the documents' DAGs, with /data moved below tmp_path."""
    data = tmp_path / "data"
    data.mkdir()
    write_examples(airflow_home, data=data)

    def run(*arguments: str) -> dict[str, Any]:
        return run_examples(airflow_home, *arguments, data=data)

    return run


def test_the_connection_of_the_document_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", connection())
    assert DeltawardHook().settings.allowed_roots == ("/data",)


def test_the_document_lists_every_extra() -> None:
    text = (ROOT / DOCUMENT).read_text()
    table = text[text.index("| Extra |") : text.index("## Runners")]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == EXTRA_NAMES


@pytest.mark.slow
def test_the_examples_run(run_dags: Runner, tmp_path: Path) -> None:
    flights = tmp_path / "data" / "flights"
    for month in (1, 2, 3):
        peer_write(str(flights), pa.table({"month": [month] * 4}), mode="append")

    rollback = 'flights_rollback={"version": 0, "dry_run": false}'
    approved = 'flights_restore={"version": 0}@ann'
    # test_operator_pages.py runs the others.
    runs = ["flights_upkeep", "flights_consumer", rollback, approved]
    seen = run_dags(*runs)

    assert {name: seen[name]["state"] for name in runs} == dict.fromkeys(runs, "success")
    assert seen["flights_upkeep"]["xcoms"]["compact[-1]"]["commits"] == [3]
    assert seen["flights_upkeep"]["xcoms"]["vacuum_plan[-1]"]["commits"] == []
    assert seen[rollback]["xcoms"]["restore[-1]"]["commits"] == [4]
    plan = seen[approved]["xcoms"]["plan[-1]"]
    assert "Nothing would change" in plan["markdown"]
    assert seen["spark_loaded"] is False
    assert PeerTable(str(flights)).to_pyarrow_table().column("month").to_pylist() == [1] * 4


def test_each_example_stands_alone_and_says_what_its_job_does() -> None:
    """Arguments are checked when a task starts; here for the rendered example."""
    merges, loads = [], []
    for block in examples():
        names: dict[str, Any] = {}
        exec(compile(block.body, "example", "exec"), names)
        dags = [value for value in names.values() if isinstance(value, DAG)]
        assert dags, block.body
        tasks = [task for dag in dags for task in dag.tasks]
        merges += [task for task in tasks if isinstance(task, DeltaMergeOperator)]
        loads += [task for task in tasks if isinstance(task, DeltaLoadOperator)]
    (merge,), (load,) = merges, loads
    merge.render_template_fields({"params": {"day": "2026-01-01"}})
    params = merge.job_params()
    assert params["source"]["uris"] == ["/data/changes/2026-01-01.parquet"]
    assert [clause["action"] for clause in params["matched"]] == ["delete", "update"]
    MERGE.check_params(params)
    load.render_template_fields({"params": {"day": "2026-01-01"}})
    LOAD.check_params(load.job_params())


def test_the_rollback_page_shows_a_run_and_every_param_and_task() -> None:
    path = ROOT / "docs" / "dags" / "table_rollback.md"
    text = path.read_text()
    (block,) = [b for b in code_blocks("docs/dags/table_rollback.md") if b.language == "json"]
    conf = json.loads(block.body)
    source = (ROOT / "dags" / "table_rollback.py").read_text()
    params = set(re.findall(r'^        "(\w+)": Param\(', source, re.MULTILINE))
    tasks = set(re.findall(r'task_id="(\w+)"', source)) | {"apply", "outcome"}
    listed = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE))))
    assert set(conf) <= params
    assert params | tasks <= listed
    assert "awaiting_input" in text


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.soak  # the DAGs of this project load on Spark in each run, by the same operator
def test_the_load_runs_on_spark(run_dags: Runner, tmp_path: Path) -> None:
    incoming = tmp_path / "data" / "incoming"
    incoming.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), incoming / "2026-01-01.parquet")
    pq.write_table(pa.table({"id": pa.array([4, -5], pa.int64())}), incoming / "2026-01-02.parquet")

    refused = 'orders_load={"day": "2026-01-02"}'
    # What a task shows of a job that failed, test_process_runner.py says.
    seen = run_dags("orders_load", *([refused] if SOAKING else []))

    assert seen["orders_load"]["state"] == "success"
    assert not SOAKING or seen[refused]["state"] == "failed"
    orders = PeerTable(str(tmp_path / "data" / "orders"))
    assert orders.version() == 0
    assert sorted(orders.to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3]
