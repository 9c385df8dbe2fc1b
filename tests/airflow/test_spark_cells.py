"""Loads and merges of tables in every store, through each way in which a connection gives the options.

On object stores, Spark's executors have the credentials in their own environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from tests.support.spark_places import STORES, SparkPlaces, copied, secrets_of, spark_places

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OPTIONS = {"aws_region": "eu-west-1", "aws_secret_access_key": "secret-of-nobody"}
REMOTE = drawn([(name, way) for name in STORES for way in WAYS], usual=1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer.start(
        master="local[2]", conf=FEW_PARTITIONS, directory=tmp_path_factory.mktemp("connect")
    ) as running:
        yield running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkPlaces]:
    names = sorted({name for name, _ in REMOTE})
    with spark_places(tmp_path_factory.mktemp("places"), names) as found:
        yield found


@pytest.fixture(scope="module")
def server_with_credentials(
    served: SparkPlaces, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectServer]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in served.environment.items():
            patch.setenv(name, value)
        running = ConnectServer.start(
            master="local[2]", conf=FEW_PARTITIONS, directory=tmp_path_factory.mktemp("connect")
        )
    with running:
        yield running


@pytest.mark.parametrize("way", drawn(WAYS, usual=1))
def test_a_local_table_is_loaded_and_merged(
    server: ConnectServer, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(name="local", base=str(tmp_path), endpoint=None, endpoint_option="", options=OPTIONS)
    table = tmp_path / "orders"
    loaded, merged = load_and_merge(place, way, str(table), server, tmp_path, monkeypatch)
    assert (loaded["output"]["engine_io"], merged["output"]["engine_io"]) == ("native", "native")
    assert rows(table) == [(1, 1.0), (2, 20.0), (3, 30.0)]
    assert "of-nobody" not in "".join(path.read_text() for path in (tmp_path / "work").rglob("*.json"))


@pytest.mark.extra
@pytest.mark.parametrize(("name", "way"), REMOTE)
def test_a_remote_table_is_loaded_and_merged(
    served: SparkPlaces,
    server_with_credentials: ConnectServer,
    name: str,
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = served.places[name]
    uri = place.new_table()
    load_and_merge(place, way, uri, server_with_credentials, tmp_path, monkeypatch)
    assert rows(copied(place, uri, tmp_path)) == [(1, 1.0), (2, 20.0), (3, 30.0)]
    kept = "".join(path.read_text() for path in (tmp_path / "work").rglob("*.json"))
    assert not [secret for secret in secrets_of(place).values() if secret in kept]


def load_and_merge(
    place: Place,
    way: str,
    uri: str,
    server: ConnectServer,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Any, Any]:
    """The values of a load that creates the table, and of a merge."""
    extra = {"runner": "spark_connect", "connect_url": server.url, "work_dir": str(folder / "work")}
    for name, value in connections(place, way, **extra).items():
        monkeypatch.setenv(name, value)
    landed = folder / "landed.parquet"
    source = {"format": "parquet", "uris": [str(landed)]}
    pq.write_table(pa.table({"id": [1, 2], "price": [1.0, 2.0]}), landed)
    loaded = DeltaLoadOperator(task_id="load", table_uri=uri, source=source).execute(context())
    assert loaded["commits"] == [0]
    pq.write_table(pa.table({"id": [2, 3], "price": [20.0, 30.0]}), landed)
    merge = DeltaMergeOperator(
        task_id="merge",
        table_uri=uri,
        source=source,
        on="t.id = s.id",
        matched=[{"action": "update_all"}],
        not_matched=[{"action": "insert_all"}],
        work_name="merge of the second delivery",
    )
    merged = merge.execute(context())
    assert merged["commits"] == [1]
    return loaded, merged


def rows(table: Path) -> list[tuple[int, float]]:
    found = PeerTable(str(table)).to_pyarrow_table().sort_by("id").to_pylist()
    return [(row["id"], row["price"]) for row in found]
