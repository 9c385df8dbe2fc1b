"""A job handed to a running Spark Connect server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException
from deltalake import DeltaTable as PeerTable

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.load import DeltaLoadOperator
from spark_jobs.connect_server import ConnectServer
from tests.support.airflow import connection_json
from tests.support.spark import FEW_PARTITIONS

# The runs in tests/airflow_dags load through Spark Connect too.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer.start(
        master="local[2]", conf=FEW_PARTITIONS, directory=tmp_path_factory.mktemp("connect")
    ) as running:
        yield running


@pytest.fixture
def connection(server: ConnectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DeltawardHook:
    value = connection_json(
        runner="spark_connect", connect_url=server.url, work_dir=str(tmp_path / "work"), deadline_seconds=200
    )
    monkeypatch.setenv("AIRFLOW_CONN_DELTAWARD_DEFAULT", value)
    return DeltawardHook()


def context(*, try_number: int = 1, run_id: str = "r") -> Any:
    instance = SimpleNamespace(dag_id="d", task_id="t", run_id=run_id, map_index=-1, try_number=try_number)
    return {"ti": instance, "logical_date": datetime(2026, 1, 1, tzinfo=UTC), "outlet_events": {}}


def test_a_load_is_applied_once_and_a_bad_one_not_at_all(connection: DeltawardHook, tmp_path: Path) -> None:
    assert connection.test_connection()[0]
    table, landed = tmp_path / "orders", tmp_path / "landed.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), landed)
    load = DeltaLoadOperator(
        task_id="t",
        table_uri=str(table),
        source={"format": "parquet", "uris": [str(landed)]},
        contract={"columns": [{"name": "id", "type": "long", "nullable": False}]},
    )

    first = load.execute(context())
    again = load.execute(context(try_number=2))

    assert (first["commits"], first["already_applied"]) == ([0], False)
    assert (again["commits"], again["already_applied"]) == ([], True)
    assert PeerTable(str(table)).to_pyarrow_table().num_rows == 3
    (latest,) = PeerTable(str(table)).history(1)
    assert json.loads(latest["userMetadata"])["try"] == 1

    pq.write_table(pa.table({"id": pa.array([4, None], pa.int64())}), landed)
    with pytest.raises(AirflowFailException):
        load.execute(context(run_id="r2"))
    assert PeerTable(str(table)).version() == 0
