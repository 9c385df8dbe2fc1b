"""One load on a company's own Spark: a real standalone cluster, and a real Connect server."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

from delta_airflow.operators.load import DeltaLoadOperator
from spark_jobs.connect_server import HOST, ConnectServer, free_port
from tests.support.spark import CONF, FEW_PARTITIONS
from tests.support.standalone import Standalone, read, standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

INTERPRETED = {name: value for name, value in CONF.items() if "codegen" in name} | FEW_PARTITIONS
CANARY = "CANARY-51c0de"
SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": f"{CANARY}-1",
    # A name by which Spark's own pages would not know that it is a secret.
    "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": f"{CANARY}-2",
}
EXTRA = {"deploy-mode": "client", "spark.executor.cores": "1", **SECRETS}


def context(run_id: str) -> Any:
    instance = SimpleNamespace(dag_id="d", task_id="t", run_id=run_id, map_index=-1, try_number=1)
    return {"ti": instance, "logical_date": datetime(2026, 1, 1, tzinfo=UTC), "outlet_events": {}}


def load(folder: Path, **arguments: Any) -> DeltaLoadOperator:
    """The same load for every connection: rows of a file to a table."""
    landed = folder / "landed.parquet"
    if not landed.exists():
        pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), landed)
    operator = DeltaLoadOperator(
        task_id="t",
        table_uri=str(folder / "orders"),
        source={"format": "parquet", "uris": [str(landed)]},
        spark_conn_id="company",
        name="nightly {{ params.what }}",
        **{"spark_conf": FEW_PARTITIONS, **arguments},
    )
    operator.render_template_fields({"params": {"what": "orders"}})  # type: ignore[typeddict-item]
    return operator


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone")) as running:
        yield running


class Watcher(threading.Thread):
    """Looks at the pages of Spark, and at the arguments of all processes, while a job runs."""

    def __init__(self, cluster: Standalone, page: str) -> None:
        super().__init__(daemon=True)
        self.cluster = cluster
        self.page = page
        self.done = threading.Event()
        self.seen: list[str] = []
        self.arguments: set[str] = set()
        self.applications: dict[str, dict[str, Any]] = {}
        self.properties: dict[str, str] = {}

    def run(self) -> None:
        while not self.done.wait(0.5):
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    self.arguments.add(" ".join(process.cmdline()))
            with contextlib.suppress(OSError, ValueError, IndexError):
                state = self.cluster.state()
                self.applications |= {app["name"]: app for app in state["activeapps"]}
                self.seen.append(json.dumps(state))
                if not self.properties:
                    self._look_at_the_application()

    def _look_at_the_application(self) -> None:
        (application,) = json.loads(read(f"{self.page}/api/v1/applications"))
        url = f"{self.page}/api/v1/applications/{application['id']}/environment"
        text = read(url)
        self.seen += [text, read(f"{self.page}/environment/")]
        self.properties = dict(json.loads(text)["sparkProperties"])


def test_a_standalone_master_shows_what_operator_and_connection_say(
    cluster: Standalone,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    airflow_connection: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    connection = {"conn_type": "spark", "host": f"spark://{HOST}", "port": cluster.port, "extra": EXTRA}
    monkeypatch.setenv("AIRFLOW_CONN_COMPANY", json.dumps(connection))
    jar, events, port = tmp_path / "company.jar", tmp_path / "events", free_port()
    events.mkdir()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    operator = load(
        tmp_path,
        jars=str(jar),
        executor_memory="512m",
        total_executor_cores="1",
        spark_conf={
            **INTERPRETED,
            "spark.ui.port": port,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.eventLog.enabled": True,
            "spark.eventLog.compress": False,
            "spark.eventLog.dir": events.as_uri(),
            "spark.company.team": "etl",
        },
    )
    watcher = Watcher(cluster, f"http://{HOST}:{port}")
    watcher.start()
    try:
        with caplog.at_level(logging.DEBUG):
            summary = operator.execute(context("r"))
    finally:
        watcher.done.set()
        watcher.join()

    assert summary["commits"] == [0]
    assert PeerTable(str(tmp_path / "orders")).to_pyarrow_table().num_rows == 3
    application = watcher.applications["nightly orders"]
    assert (application["cores"], application["memoryperexecutor"]) == (1, 512)
    shown = watcher.properties
    assert shown["spark.app.name"] == "nightly orders"
    assert shown["spark.master"] == f"spark://{HOST}:{cluster.port}"
    assert shown["spark.submit.deployMode"] == "client"
    assert shown["spark.company.team"] == "etl"
    assert shown["spark.sql.shuffle.partitions"] == "2"
    assert shown["spark.executor.cores"] == "1"
    assert shown["spark.jars"].endswith("/company.jar")
    # The secrets did reach the application, and nobody is shown them.
    assert {shown[name] for name in SECRETS} == {"*********(redacted)"}
    rendered = {name: getattr(operator, name) for name in operator.template_fields}
    files = {
        str(path): path.read_text(errors="replace")
        for folder in (airflow_connection, events)
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert any("SparkListenerEnvironmentUpdate" in text for text in files.values())
    output = caplog.text + "".join(capfd.readouterr())
    assert any("--name nightly orders" in line for line in watcher.arguments)
    for place in (watcher.seen, sorted(watcher.arguments), rendered, summary, files, output):
        assert place
        assert CANARY not in json.dumps(place)


@pytest.mark.usefixtures("airflow_connection")
def test_the_same_load_runs_on_a_connect_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with ConnectServer.start(master="local[1]", directory=tmp_path / "server") as server:
        connection = {"conn_type": "spark_connect", "host": HOST, "port": server.port, "login": "etl"}
        monkeypatch.setenv("AIRFLOW_CONN_COMPANY", json.dumps(connection))
        summary = load(tmp_path, spark_conf=INTERPRETED).execute(context("r"))
    assert summary["commits"] == [0]
    assert PeerTable(str(tmp_path / "orders")).to_pyarrow_table().num_rows == 3
