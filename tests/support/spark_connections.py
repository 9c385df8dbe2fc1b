"""Operators on a company's Spark connection, and the commands that start their jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from delta_airflow.hooks.settings import ConnectionSettings, RunnerName
from delta_airflow.hooks.spark_connection import chosen_runner
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.runners.process import Command
from delta_airflow.runners.spark_provider import command_of
from delta_airflow.spark_parsing import parse_spark_arguments
from delta_core.jobs.job_spec import JobSpec, TableRef
from tests.support.spark_submit import KeptSubmission, install

CANARY = "CANARY-7f3a9c"
STANDALONE = {"conn_type": "spark", "host": "spark://master", "port": 7077}
CONNECT = {"conn_type": "spark_connect", "host": "connect.example", "port": 15002}


def context() -> Any:
    instance = SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=1)
    return {"ti": instance, "logical_date": datetime(2026, 1, 1, tzinfo=UTC), "outlet_events": {}}


def company(monkeypatch: pytest.MonkeyPatch, **connection: Any) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_COMPANY", json.dumps(connection))


def optimize(**arguments: Any) -> DeltaOptimizeOperator:
    return DeltaOptimizeOperator(**{"task_id": "t", "table_uri": "/data/t", **arguments})


def command(tmp_path: Path, settings: ConnectionSettings | None = None, **arguments: Any) -> Command:
    """The command for arguments, without starting it."""
    spark = parse_spark_arguments(arguments)
    chosen = chosen_runner(spark, named=None, otherwise=RunnerName.SPARK_SUBMIT)
    return command_of(chosen, spark, settings or ConnectionSettings()).build(
        spec_path=tmp_path / "spec.json",
        result_path=tmp_path / "result.json",
        spec=JobSpec(kind="optimize", table=TableRef(uri="file:///t"), job_id="j1"),
    )


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, airflow_connection: Path) -> KeptSubmission:
    return install(monkeypatch, tmp_path / "bin")
