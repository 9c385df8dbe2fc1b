"""Every example of docs/airflow.md, as a reader would use it: one file each in a DAG folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.hooks.settings import EXTRA_NAMES
from tests.support.airflow import AirflowHome
from tests.support.repository import ROOT, code_blocks

DOCUMENT = "docs/airflow.md"
WORKER = ROOT / "tests" / "airflow" / "docs_worker.py"

Runner = Callable[..., dict[str, Any]]


def connection() -> str:
    """The value that the document's `export` line gives the connection's variable."""
    (block,) = [block for block in code_blocks(DOCUMENT) if block.language == "bash"]
    command, assignment = shlex.split(block.body)
    name, _, value = assignment.partition("=")
    assert (command, name) == ("export", "AIRFLOW_CONN_DELTAWARD_DEFAULT")
    return value


@pytest.fixture
def run_dags(airflow_home: AirflowHome, tmp_path: Path) -> Runner:
    """Puts the examples, with /data moved below tmp_path, into a DAG folder and runs some of them."""
    data = tmp_path / "data"
    data.mkdir()
    for number, block in enumerate(code_blocks(DOCUMENT)):
        if block.language == "python":
            body = block.body.replace('"/data/', f'"{data}/')
            (airflow_home.dags / f"example_{number}.py").write_text(body)

    def run(*arguments: str) -> dict[str, Any]:
        moved = connection().replace("/var/lib/deltaward", str(tmp_path / "work")).replace("/data", str(data))
        environment = airflow_home.environment(AIRFLOW_CONN_DELTAWARD_DEFAULT=moved)
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        done = subprocess.run(
            [sys.executable, str(WORKER), *arguments],
            env=environment,
            cwd=airflow_home.path,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
        assert lines, done.stdout[-4000:] + done.stderr[-4000:]
        seen: dict[str, Any] = json.loads(lines[-1].removeprefix("SEEN "))
        assert seen["import_errors"] == {}
        return seen

    return run


def test_the_connection_of_the_document_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", connection())
    assert DeltawardHook().settings.allowed_roots == ("/data",)


def test_the_document_lists_every_extra() -> None:
    text = (ROOT / DOCUMENT).read_text()
    table = text[text.index("| Extra |") : text.index("An extra that is not")]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == EXTRA_NAMES


def test_the_examples_run(run_dags: Runner, tmp_path: Path) -> None:
    flights, orders = tmp_path / "data" / "flights", tmp_path / "data" / "orders"
    for month in (1, 2, 3):
        peer_write(str(flights), pa.table({"month": [month] * 4}), mode="append")
    peer_write(str(orders), pa.table({"id": [1, 2]}), mode="append")

    rollback = 'flights_rollback={"version": 0, "dry_run": false}'
    runs = ["flights_upkeep", "observe_tables", "after_the_first_change", "flights_consumer", rollback]
    seen = run_dags(*runs)

    assert {name: seen[name]["state"] for name in runs} == dict.fromkeys(runs, "success")
    assert seen["flights_upkeep"]["xcoms"]["compact[-1]"]["commits"] == [3]
    assert seen["flights_upkeep"]["xcoms"]["vacuum_plan[-1]"]["commits"] == []
    report = seen["observe_tables"]["xcoms"]["report[-1]"]
    assert report == {flights.as_uri(): 1, orders.as_uri(): 1}
    assert seen["after_the_first_change"]["xcoms"]["changed[-1]"] == 3
    assert seen[rollback]["xcoms"]["restore[-1]"]["commits"] == [4]
    assert seen["spark_loaded"] is False
    assert PeerTable(str(flights)).to_pyarrow_table().column("month").to_pylist() == [1] * 4


@pytest.mark.spark
def test_the_load_runs_on_spark(run_dags: Runner, tmp_path: Path) -> None:
    incoming = tmp_path / "data" / "incoming"
    incoming.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), incoming / "2026-01-01.parquet")
    pq.write_table(pa.table({"id": pa.array([4, -5], pa.int64())}), incoming / "2026-01-02.parquet")

    refused = 'orders_load={"day": "2026-01-02"}'
    seen = run_dags("orders_load", refused)

    assert seen["orders_load"]["state"] == "success"
    assert seen[refused]["state"] == "failed"
    orders = PeerTable(str(tmp_path / "data" / "orders"))
    assert orders.version() == 0
    assert sorted(orders.to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3]
