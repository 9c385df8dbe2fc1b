"""Spark reads, writes, loads and merges tables on every remote store without a jar.

On HDFS, Spark reads and writes itself; on object stores through Arrow. The rows' witness is deltalake, on a
copy of the table. The executors have the credentials in their environment; the driver passes them as options.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import signal
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

import spark_jobs
from delta_core import DeltaTable, write_deltalake
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import DeltaError
from delta_core.jobs import run_job
from delta_core.jobs.codec import result_to_json
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.storage.open import open_store
from spark_jobs.connect_server import ConnectServer
from spark_jobs.session import get_session
from spark_jobs.spark_executor import SparkExecutor
from tests.support.driver_runs import Driver
from tests.support.emulators.places import Place
from tests.support.fault_plan import ALL_FAULTS, Fault, FaultQueue, RequestFilter
from tests.support.fault_proxy import FaultProxy
from tests.support.soak import SOAKING, drawn
from tests.support.spark import CONF, FEW_PARTITIONS
from tests.support.spark_places import SparkPlaces, copied, spark_places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.extra,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:The SQL config:UserWarning"),
]

PART = "_pärt"
HERE = ["s3", *drawn(("gcs", "azure", "hdfs"), usual=1)]
SESSIONS = ("classic", "connect")
# In CI a classic session has S3 and one on Connect another store: each session meets a store, and each store
# a session.
CELLS = [*itertools.product(SESSIONS, HERE)] if SOAKING else [*zip(SESSIONS, HERE, strict=True)]
WAYS = {"s3": "arrow", "gcs": "arrow", "azure": "arrow", "hdfs": "native"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A Spark session, and the directory with all that its Spark writes about its work."""

    spark: SparkSession
    traces: Path
    remote: str | None = None


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkPlaces]:
    folder = tmp_path_factory.mktemp("places")
    with spark_places(folder, HERE) as found, pytest.MonkeyPatch.context() as patch:
        for name, value in found.environment.items():
            patch.setenv(name, value)
        yield found


def _parametrized(metafunc: pytest.Metafunc) -> set[str]:
    return {mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        metafunc.parametrize(("session", "place"), CELLS, indirect=True, scope="module")
    elif "session" in metafunc.fixturenames and "session" not in _parametrized(metafunc):
        metafunc.parametrize("session", SESSIONS, indirect=True, scope="module")


@pytest.fixture(scope="module")
def session(
    request: pytest.FixtureRequest, served: SparkPlaces, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    traces = tmp_path_factory.mktemp("traces")
    conf = {
        **FEW_PARTITIONS,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{traces}",
        "spark.eventLog.compress": "false",
    }
    if request.param == "classic":
        from pyspark import SparkContext

        if SparkContext._gateway is not None:
            pytest.skip("This process has started a JVM before, without the executors' credentials.")
        spark = get_session(master="local[2]", conf=CONF | conf, app_name="stores")
        yield Session(spark=spark, traces=traces)
        spark.stop()
        return
    with ConnectServer.start(master="local[2]", conf=conf, directory=traces) as server:
        spark = get_session(server.url, conf=FEW_PARTITIONS)
        yield Session(spark=spark, traces=traces, remote=server.url)
        spark.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest, served: SparkPlaces) -> Place:
    return served.places[request.param]


def rows_by_peer(place: Place, uri: str, folder: Path) -> list[tuple[Any, ...]]:
    table = PeerTable(str(copied(place, uri, folder))).to_pyarrow_table()
    return sorted(zip(*(table[name].to_pylist() for name in ("id", PART, "name")), strict=True))


def test_appends_overwrites_merges_and_reads(session: Session, place: Place, tmp_path: Path) -> None:
    uri, options = place.new_table(), dict(place.options)

    def frame(first: int, last: int, name: str) -> Any:
        return session.spark.range(first, last).selectExpr(
            "id", f"if(id % 2 = 0, 'ä b', null) `{PART}`", f"'{name}' name"
        )

    def expected(name_of: dict[int, str]) -> list[tuple[int, str | None, str]]:
        return sorted((i, "ä b" if i % 2 == 0 else None, name) for i, name in name_of.items())

    created = spark_jobs.write(
        frame(0, 50, "old"), uri, mode="append", partition_by=[PART], storage_options=options
    )
    assert created.output["engine_io"] == WAYS[place.name]
    spark_jobs.write(frame(50, 60, "old"), uri, mode="append", storage_options=options)
    model = dict.fromkeys(range(60), "old")
    assert sorted(rows_by_peer(place, uri, tmp_path), key=repr) == sorted(expected(model), key=repr)
    spark_jobs.write(
        frame(10, 20, "new").where("id % 2 = 0"),
        uri,
        mode="overwrite",
        replace_where=f"id < 50 AND `{PART}` = 'ä b'",
        storage_options=options,
    )
    model = {i: n for i, n in model.items() if i % 2 or i >= 50} | dict.fromkeys(range(10, 20, 2), "new")
    table = spark_jobs.DeltaTable.forPath(session.spark, uri, storage_options=options)
    (
        table.alias("t")
        .merge(frame(55, 65, "merged").alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.id = 55")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    merged = spark_jobs.last_result(uri)
    assert merged is not None
    assert merged.output["engine_io"] == WAYS[place.name]
    assert merged.output["metrics"]["numTargetRowsMatchedUpdated"] == 4
    model |= dict.fromkeys(range(56, 65), "merged")
    del model[55]
    assert sorted(rows_by_peer(place, uri, tmp_path), key=repr) == sorted(expected(model), key=repr)
    deleted = spark_jobs.delete(session.spark, uri, "id = 57", storage_options=options)
    assert deleted.output["engine_io"] == WAYS[place.name]
    spark_jobs.update(session.spark, uri, {"name": "'set'"}, "id = 58", storage_options=options)
    model |= {58: "set"}
    del model[57]
    found = spark_jobs.read(
        session.spark, uri, columns=["name", "id"], where="id >= 50", storage_options=options
    )
    assert sorted(tuple(row) for row in found.collect()) == sorted(
        (name, i) for i, name in model.items() if i >= 50
    )
    assert DeltaTable(uri, storage_options=options).vacuum(dry_run=True) == []


def test_loads_with_a_gate_and_merges_as_jobs(session: Session, place: Place, tmp_path: Path) -> None:
    uri, landed = place.new_table(), tmp_path / "landed.parquet"
    source = {"format": "parquet", "uris": [str(landed)]}
    options = dict(place.options)
    context = JobContext(
        executor=SparkExecutor(session.spark, storage_options=options), storage_options=options
    )

    def run(kind: str, params: dict[str, Any]) -> JobResult:
        return run_job(JobSpec(kind=kind, table=TableRef(uri=uri), params=params), context)

    def land(ids: list[int], name: str) -> None:
        part = pa.array([None] * len(ids), pa.string())
        pq.write_table(pa.table({"id": ids, PART: part, "name": [name] * len(ids)}), landed)

    land([1, 2, 3], "loaded")
    suite = {
        "suite": {
            "name": "small ids",
            "expectations": [
                {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "max_value": 2}}
            ],
        },
        "on_failure": "quarantine",
        "engine": "spark",
    }
    loaded = run("load", {"source": source, "quality": suite})
    assert loaded.status is JobStatus.SUCCEEDED, loaded.error
    assert (loaded.output["engine_io"], loaded.output["quality"]["quarantined_rows"]) == (WAYS[place.name], 1)
    land([2, 4], "merged")
    merged = run(
        "merge",
        {
            "source": source,
            "on": "t.id = s.id",
            "source_alias": "s",
            "matched": [{"action": "update_all"}],
            "not_matched": [{"action": "insert_all"}],
        },
    )
    assert merged.status is JobStatus.SUCCEEDED, merged.error
    assert rows_by_peer(place, uri, tmp_path) == [
        (1, None, "loaded"),
        (2, None, "merged"),
        (4, None, "merged"),
    ]


def test_no_secret_leaves_the_driver(session: Session, served: SparkPlaces, place: Place) -> None:
    """No plan, setting, log, event, error or commit has one, after work that succeeds and work that fails."""
    uri, options = place.new_table(), dict(place.options)
    frame = session.spark.range(4).selectExpr("id", "'x' name")
    result = spark_jobs.write(frame, uri, mode="append", storage_options=options)
    found = spark_jobs.read(session.spark, uri, where="id > 1", storage_options=options)
    assert found.count() == 2
    plans = io.StringIO()
    with contextlib.redirect_stdout(plans):
        found.explain(extended=True)
    store = open_store(uri, storage_options=options)
    for info in list(store.walk()):
        if info.path.endswith(".parquet"):
            store.delete(info.path)
    with pytest.raises(Exception, match=r"missing|not exist|PATH_NOT_FOUND") as missing:
        spark_jobs.read(session.spark, uri, storage_options=options).collect()
    with pytest.raises(Exception, match="whole") as refused:
        spark_jobs.write(
            frame, uri, mode="append", constraints=[("whole", "id < 3")], storage_options=options
        )
    conf = session.spark.conf
    settings = dict(conf.getAll) if hasattr(type(conf), "getAll") else {}
    seen = [plans.getvalue(), repr(settings), result_to_json(result), repr(found), str(found.schema)]
    seen += [*traceback.format_exception(missing.value), *traceback.format_exception(refused.value)]
    seen += [store.read(info.path).decode(errors="replace") for info in store.walk("_delta_log")]
    written = [path for path in session.traces.rglob("*") if path.is_file()]
    assert any("events" in path.name for path in written)
    seen += [path.read_text(errors="replace") for path in written]
    assert served.environment, "there are secrets to look for"
    for secret in served.environment.values():
        assert not [text[:200] for text in seen if secret in text or json.dumps(secret)[1:-1] in text]


# A driver in the process of the tests cannot be killed.
@pytest.mark.parametrize("session", ["connect"], indirect=True, scope="module")
@pytest.mark.parametrize("moment", drawn(("first file", "data.written", "commit.before"), usual=1))
def test_a_killed_driver_leaves_nothing_visible(
    session: Session, served: SparkPlaces, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = served.places["s3"]
    uri, options = place.new_table(), dict(place.options)
    monkeypatch.setenv("DELTAWARD_STORAGE_OPTIONS", json.dumps(options))
    write_deltalake(uri, pa.table({"id": [-1], "name": ["x" * 100]}), storage_options=options)
    landed = [tmp_path / f"landed-{number}.parquet" for number in range(6)]
    for number, path in enumerate(landed):
        ids = range(number * 50_000, (number + 1) * 50_000)
        pq.write_table(pa.table({"id": ids, "name": [f"{i:0100}" for i in ids]}), path)
    load = JobSpec(
        kind="load",
        table=TableRef(uri=uri),
        params={"source": {"format": "parquet", "uris": [str(path) for path in landed]}},
        idempotency=IdempotencyKey(app_id="killed"),
    )
    store = open_store(uri, storage_options=options)

    def data_files() -> set[str]:
        return {info.path for info in store.walk() if info.path.endswith(".parquet")}

    before = data_files()
    if moment == "first file":
        driver = Driver(load, tmp_path / "killed", remote=session.remote)
        while data_files() == before and driver.process.poll() is None:
            SYSTEM_CLOCK.sleep(0.05)
        driver.process.kill()
        assert driver.finish().result is None
    else:
        undisturbed = place.new_table()
        write_deltalake(undisturbed, pa.table({"id": [-1], "name": ["x"]}), storage_options=options)
        other = replace(load, table=TableRef(uri=undisturbed))
        whole = Driver(other, tmp_path / "whole", remote=session.remote).finish()
        assert whole.result is not None, whole.output
        killed = Driver(
            load, tmp_path / "killed", remote=session.remote, at=whole.events.index(moment)
        ).finish()
        assert killed.code == -signal.SIGKILL, killed.output
    assert data_files() > before
    assert PeerTable(str(copied(place, uri, tmp_path))).to_pyarrow_table()["id"].to_pylist() == [-1]
    again = Driver(load, tmp_path / "again", remote=session.remote).finish()
    assert (again.code, again.result and again.result["commits"]) == (0, [1]), again.output
    table = PeerTable(str(copied(place, uri, tmp_path))).to_pyarrow_table()
    assert sorted(table["id"].to_pylist()) == list(range(-1, 300_000))
    handle = DeltaTable(uri, storage_options=options)
    live = {path.removeprefix(f"{uri}/") for path in handle.file_uris()}
    orphans = handle.vacuum(retention_hours=0, enforce_retention=False, force=True, dry_run=True)
    assert set(orphans) == data_files() - live
    assert orphans


def test_maintenance_runs_in_the_executors(session: Session, place: Place, tmp_path: Path) -> None:
    uri, options = place.new_table(), dict(place.options)
    for number in range(3):
        frame = session.spark.range(number * 10, number * 10 + 10).selectExpr("id", "'x' name")
        spark_jobs.write(frame.coalesce(1), uri, mode="append", storage_options=options)
    table = spark_jobs.DeltaTable.forPath(session.spark, uri, storage_options=options)
    metrics = table.optimize().executeCompaction().collect()[0]["metrics"]
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (3, 1)
    assert table.vacuum().collect() == []
    table.restoreToVersion(1)
    found = PeerTable(str(copied(place, uri, tmp_path))).to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == list(range(20))


@pytest.mark.parametrize("fault", drawn(ALL_FAULTS, usual=1), ids=lambda fault: f"{fault.kind}-{fault.point}")
def test_a_fault_on_the_commit_loses_and_doubles_nothing(
    session: Session, served: SparkPlaces, fault: Fault, tmp_path: Path
) -> None:
    place = served.places["s3"]
    uri = place.new_table()
    spark_jobs.write(
        session.spark.range(3).toDF("id"), uri, mode="append", storage_options=dict(place.options)
    )
    with FaultProxy(place.endpoint or "", hang_seconds=1.0) as proxy:
        commits = RequestFilter(methods=frozenset({"PUT"}), path=r"_delta_log/0+1\.json")
        proxy.inject(FaultQueue([fault]), matching=commits)
        options = place.through(proxy.endpoint)

        def append() -> None:
            frame = session.spark.range(3, 6).toDF("id")
            spark_jobs.write(frame, uri, mode="append", txn=("job", 1), storage_options=options)

        try:
            append()
        except DeltaError:
            append()
        assert [request.fault for request in proxy.requests if request.fault is not None] == [fault]
    table = PeerTable(str(copied(place, uri, tmp_path))).to_pyarrow_table()
    assert sorted(table["id"].to_pylist()) == list(range(6))
