"""Runs of an example DAG in another process, with an Airflow home and tables of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_jobs.connect_server import ConnectServer
from tests.support.airflow import AirflowHome, connection_json
from tests.support.repository import ROOT
from tests.support.spark import FEW_PARTITIONS

_WORKER = ROOT / "tests" / "airflow_dags" / "example_worker.py"


@contextmanager
def shared_engine(folder: Path) -> Iterator[dict[str, str]]:
    """A Connect server for all runs; what a connection's extra says of it."""
    with ConnectServer.start(master="local[2]", conf=FEW_PARTITIONS, directory=folder) as server:
        yield {"runner": "spark_connect", "connect_url": server.url}


def run_example(
    home: AirflowHome, dag_id: str, *confs: dict[str, Any], engine: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One run of the DAG after the other; the tables are below `tables` in the home."""
    environment = home.environment(
        AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
        AIRFLOW_CONN_DELTAWARD_DEFAULT=connection_json(work_dir=str(home.path / "work"), **engine),
        DELTAWARD_TABLES_ROOT=str(tables_of(home)),
        DELTAWARD_LANDING_ROOT=str(home.path / "landing"),
    )
    done = subprocess.run(
        [sys.executable, str(_WORKER), dag_id, json.dumps(confs)],
        env=environment,
        cwd=home.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RUNS ")]
    assert lines, (done.stdout + done.stderr)[-6000:]
    runs: list[dict[str, Any]] = json.loads(lines[-1].removeprefix("RUNS "))
    return runs


def tables_of(home: AirflowHome) -> Path:
    """Where the runs' tables are."""
    return home.path / "tables"
