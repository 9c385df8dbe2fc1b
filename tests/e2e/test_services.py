"""The services of docker/compose.yaml as processes: Airflow on PostgreSQL, a Spark cluster, Spark Connect."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake as peer_write

from demo import raw_data
from demo.airflow_api import AirflowApi
from demo.dag_runs import AirflowDagRunner, RunRecord
from demo.environment import Login
from demo.processes import DemoError, answers, running
from demo.table_reader import TableReader, same_rows
from tests.support.repository import ROOT
from tests.support.services import Deployment, listening

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.slow,
]

START_SECONDS = 1200
RUN_SECONDS = 1200
ETL, ROLLBACK, SUBMITTED = "flights_etl", "table_rollback", "submitted_load"
NEW_ROWS = 1_000

SUBMITTED_DAG = '''
"""A load whose driver spark-submit starts beside the task, in the pool that the deployment has made."""

import os

from airflow.sdk import DAG

from delta_airflow.operators.load import DeltaLoadOperator

with DAG("submitted_load", schedule=None):
    DeltaLoadOperator(
        task_id="load",
        runner="spark_submit",
        pool="spark",
        table_uri=os.environ["DELTAWARD_TABLES_ROOT"] + "/submitted",
        source={"format": "parquet", "uris": [os.environ["DELTAWARD_LANDING_ROOT"] + "/new.parquet"]},
        mode="append",
    )
'''


class Api(AirflowApi):
    """With what an operator does before the first run."""

    def unpause(self, dag_id: str) -> None:
        self._authorised("PATCH", f"/api/v2/dags/{dag_id}?update_mask=is_paused", {"is_paused": False})

    def connection(self, connection_id: str) -> dict[str, Any]:
        return self._get(f"/api/v2/connections/{connection_id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The running services and how to ask them for something."""

    deployment: Deployment
    api: Api

    def run(self, dag_id: str, run_id: str, conf: dict[str, Any]) -> RunRecord:
        """Run a DAG to its end, which must be good; whatever it asks is approved."""
        services = [service for name, service in self.deployment.services.items() if name != "airflow-init"]
        runner = AirflowDagRunner(self.api, services=services, seconds=RUN_SECONDS)
        began = time.monotonic()
        progress = ""

        def report(line: str) -> None:
            nonlocal progress
            progress = line

        try:
            done = runner.run(dag_id, run_id=run_id, conf=conf, report=report, answer="Approve")
        except DemoError as error:
            pytest.fail(f"{error}: {progress}\n{self.task_logs(dag_id, run_id)}")
        print(f"{dag_id} {run_id}: {done.state} in {time.monotonic() - began:.0f} s")
        assert done.state == "success", f"{progress}\n{self.task_logs(dag_id, run_id)}"
        return done

    def task_logs(self, dag_id: str, run_id: str) -> str:
        """The ends of the logs of a run's tasks."""
        folder = self.deployment.folder("/var/log/airflow") / f"dag_id={dag_id}" / f"run_id={run_id}"
        return "\n".join(f"{path}\n{path.read_text()[-2500:]}" for path in sorted(folder.rglob("*.log")))

    def table(self, name: str) -> TableReader:
        return TableReader(path=self.deployment.folder("/data") / "tables" / name)

    def master(self) -> dict[str, Any]:
        """What the Spark master says of its workers and applications."""
        url = f"http://127.0.0.1:{self.deployment.port('spark-master:8080')}/json/"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=300) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    home = tmp_path_factory.mktemp("services")
    deployment = Deployment(home)
    _write_dags(home / "dags")
    _write_delivery(home / "data" / "landing")
    began = time.monotonic()
    # Told to end, as by a time box, this process ends the services first.
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        deployment.start(seconds=START_SECONDS)
        password = json.loads(deployment.secrets()["airflow-passwords.json"])["admin"]
        url = f"http://127.0.0.1:{deployment.port('airflow-api-server:8080')}"
        platform = Platform(deployment=deployment, api=Api(Login(url=url, user="admin", password=password)))
        _unpause(platform.api, seconds=600)
        print(f"all services are healthy after {time.monotonic() - began:.0f} s")
        yield platform
    finally:
        signal.signal(signal.SIGTERM, previous)
        left = deployment.stop()
    assert left == []


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _write_dags(folder: Path) -> None:
    """The project's DAGs, as the image has them, and one more."""
    shutil.copytree(ROOT / "dags", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / f"{SUBMITTED}.py").write_text(SUBMITTED_DAG)


def _write_delivery(folder: Path) -> None:
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array(range(NEW_ROWS), pa.int64())}), folder / "new.parquet")


def _unpause(api: Api, *, seconds: float) -> None:
    wanted = {ETL, ROLLBACK, SUBMITTED}
    deadline = time.monotonic() + seconds
    while missing := wanted - api.dag_ids():
        assert time.monotonic() < deadline, f"not parsed: {missing}; {api.import_errors()}"
        time.sleep(1)
    assert api.import_errors() == []
    for dag_id in wanted:
        api.unpause(dag_id)


def test_the_platform_loads_and_rolls_back(platform: Platform) -> None:
    platform.api.trigger(SUBMITTED, run_id="submitted", conf={})
    platform.run(ETL, "january", {"first_month": "2013-01", "feeds": ["flights"]})
    flights = platform.table("flights")
    january = flights.latest_version
    assert _months(flights, january) == _published("flights", 1)

    peer_write(str(flights.path), flights.rows(january).slice(0, 9), mode="append")
    both = platform.table("flights").latest_version
    assert flights.rows(both).num_rows == flights.rows(january).num_rows + 9

    # The demonstration runs the maintenance of these tables, on Airflow alone.
    platform.run(ROLLBACK, "back", {"table": str(flights.path), "version": january})
    restored = platform.table("flights").latest_version
    assert restored > both
    assert same_rows(flights.rows(restored), flights.rows(january))

    _wait_for_success(platform, SUBMITTED, "submitted")
    submitted = platform.table("submitted")
    assert sorted(submitted.rows(submitted.latest_version)["id"].to_pylist()) == list(range(NEW_ROWS))


def test_both_workers_run_executors_for_the_connect_server(platform: Platform) -> None:
    state = platform.master()
    workers = [worker for worker in state["workers"] if worker["state"] == "ALIVE"]
    assert len(workers) == 2
    assert all(worker["coresused"] >= 1 for worker in workers), workers
    (connect,) = [app for app in state["activeapps"] if app["name"] == "deltaward-connect"]
    assert connect["cores"] == 2
    for name in ("spark-worker-1", "spark-worker-2"):
        folder = platform.deployment.layout.home / "services" / name / "spark" / "work" / connect["id"]
        assert list(folder.glob("*/stderr")), f"{name} has run nothing for {connect['id']}"


def test_only_loopback_is_listened_on(platform: Platform) -> None:
    addresses = listening(running(platform.deployment.layout))
    assert "127.0.0.1" in addresses
    assert addresses <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_no_secret_is_in_an_argument_or_a_variable(platform: Platform) -> None:
    secrets = [text for text in platform.deployment.secrets().values() if len(text) < 200]
    assert len(secrets) >= 8
    seen = 0
    for process in running(platform.deployment.layout):
        with contextlib.suppress(psutil.Error):
            arguments = " ".join(process.cmdline())
            # Spark itself hands the shared secret to its executors in their environment.
            executor = "CoarseGrainedExecutorBackend" in arguments or "pyspark.daemon" in arguments
            variables = "" if executor else "\n".join(process.environ().values())
            assert not [text for text in secrets if text in arguments or text in variables], arguments[:300]
            seen += 1
    assert seen > 10


def test_the_connection_names_this_deployment_and_keeps_to_its_tables(platform: Platform) -> None:
    connection = platform.api.connection("deltaward_default")
    extra = json.loads(connection["extra"])
    assert connection["conn_type"] == "deltaward"
    assert extra["connect_url"] == f"sc://127.0.0.1:{platform.deployment.port('spark-connect:15002')}"
    data = platform.deployment.folder("/data")
    assert extra["allowed_roots"] == [str(data / "tables"), str(data / "landing")]


def test_every_process_ends_with_the_deployment(platform: Platform) -> None:
    assert running(platform.deployment.layout)
    assert platform.deployment.stop() == []
    assert running(platform.deployment.layout) == []
    ports = {int(address.rpartition(":")[2]) for address in platform.deployment.addresses.values()}
    assert len(ports) >= 7
    assert not [port for port in ports if answers(port)]


def _months(table: TableReader, version: int) -> dict[int, int]:
    return raw_data.rows_per_month(table.rows(version))


def _published(feed: str, *months: int) -> dict[int, int]:
    return raw_data.rows_per_month(raw_data.read(feed, months=months))


def _wait_for_success(platform: Platform, dag_id: str, run_id: str) -> None:
    deadline = time.monotonic() + RUN_SECONDS
    while (state := platform.api.run(dag_id, run_id)["state"]) not in ("success", "failed"):
        assert time.monotonic() < deadline, f"{dag_id} {run_id} is still {state}"
        time.sleep(1)
    assert state == "success", platform.task_logs(dag_id, run_id)
