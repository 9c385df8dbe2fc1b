"""Loads and merges of local tables through connections for another store: options, and another connection.

Tables in other stores wait for Spark's way to them: see `spark_jobs.reader.data_files.spark_root`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.merge import DeltaMergeOperator
from spark_jobs.connect_server import ConnectServer
from tests.support.emulators.places import Place
from tests.support.operator_cells import WAYS, connections, context
from tests.support.soak import drawn
from tests.support.spark import FEW_PARTITIONS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OPTIONS = {"aws_region": "eu-west-1", "aws_secret_access_key": "secret-of-nobody"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer.start(
        master="local[2]", conf=FEW_PARTITIONS, directory=tmp_path_factory.mktemp("connect")
    ) as running:
        yield running


@pytest.mark.parametrize("way", drawn(WAYS, usual=1))
def test_a_local_table_is_loaded_and_merged(
    server: ConnectServer, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(name="local", base=str(tmp_path), endpoint=None, endpoint_option="", options=OPTIONS)
    extra = {"runner": "spark_connect", "connect_url": server.url, "work_dir": str(tmp_path / "work")}
    for name, value in connections(place, way, **extra).items():
        monkeypatch.setenv(name, value)
    table, landed = tmp_path / "orders", tmp_path / "landed.parquet"
    pq.write_table(pa.table({"id": [1, 2], "price": [1.0, 2.0]}), landed)
    source = {"format": "parquet", "uris": [str(landed)]}

    loaded = DeltaLoadOperator(task_id="load", table_uri=str(table), source=source).execute(context())
    assert loaded["commits"] == [0]
    pq.write_table(pa.table({"id": [2, 3], "price": [20.0, 30.0]}), landed)
    merge = DeltaMergeOperator(
        task_id="merge",
        table_uri=str(table),
        source=source,
        on="t.id = s.id",
        matched=[{"action": "update_all"}],
        not_matched=[{"action": "insert_all"}],
        work_name="merge of the second delivery",
    )
    assert merge.execute(context())["commits"] == [1]
    rows = PeerTable(str(table)).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["price"]) for row in rows] == [(1, 1.0), (2, 20.0), (3, 30.0)]
    assert "of-nobody" not in "".join(path.read_text() for path in (tmp_path / "work").rglob("*.json"))
