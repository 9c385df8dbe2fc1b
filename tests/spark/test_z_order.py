from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from delta_core.errors import InvalidTableError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering import plan_z_order
from delta_core.maintenance.compaction import plan_compaction
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from spark_jobs.spark_executor import SparkExecutor
from tests.support.preserved_tables import TABLES, build, fingerprint
from tests.support.z_order_case import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def snapshot_of(path: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(path))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    rng = random.Random(4)
    for _ in range(4):
        rows = pa.table(
            {
                "x": [rng.randint(0, 999) for _ in range(500)],
                "name": [f"n{rng.randint(0, 50)}" for _ in range(500)],
            }
        )
        deltalake.write_deltalake(str(path), rows, mode="append")
    return path


@pytest.mark.slow
def test_over_disk_the_files_are_those_of_threads(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    found = []
    for executor in (SparkExecutor(spark), None):
        snapshot = snapshot_of(table)
        before = rows_of(table)
        plan = plan_z_order(snapshot, ["x", "name"], target_size_bytes=snapshot.files.total_bytes // 3)
        result = apply_rewrite(snapshot, plan, run=Run(executor=executor), memory_limit_bytes=20_000)
        assert result.groups[0].spilled
        assert rows_of(table) == before
        found.append([(file["rows"], file["z_first"], file["z_last"]) for file in result.groups[0].files])
        deltalake.DeltaTable(str(table)).restore(3)
    assert found[0] == found[1]
    assert [p.name for p in table.iterdir() if "spill" in p.name] == []


def test_a_task_that_fails_on_a_worker_leaves_nothing(spark: SparkSession, table: Path) -> None:
    snapshot = snapshot_of(table)
    plan = plan_z_order(snapshot, ["x"], target_size_bytes=snapshot.files.total_bytes // 3)
    victim = table / snapshot.files.to_table(["path"])["path"][-1].as_py()
    data = victim.read_bytes()
    victim.write_bytes(data[: len(data) // 2])
    before = {path.name for path in table.iterdir()}
    with pytest.raises(InvalidTableError):
        apply_rewrite(snapshot, plan, run=Run(executor=SparkExecutor(spark)), memory_limit_bytes=20_000)
    assert {path.name for path in table.iterdir()} == before
    assert snapshot_of(table).version == snapshot.version


def test_a_job_on_spark_orders_a_table(spark: SparkSession, table: Path) -> None:
    params: dict[str, Any] = {"z_order_by": ["x", "name"]}
    spec = JobSpec(kind="optimize", table=TableRef(uri=str(table)), params=params, engine="spark")
    result = run_job(spec, JobContext(executor=SparkExecutor(spark)))
    assert result.error is None
    assert result.actual["rows"] == 2000
    entry = deltalake.DeltaTable(str(table)).history(1)[0]
    assert json.loads(entry["operationParameters"]["zOrderBy"]) == ["x", "name"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mapped by name", "tracked"])
def test_workers_preserve_what_threads_preserve(spark: SparkSession, tmp_path: Path, name: str) -> None:
    build(tmp_path, TABLES[name])
    store = LocalLogStore(tmp_path)
    snapshot = Snapshot.load(store)
    before = fingerprint(tmp_path, up_to=snapshot.version)
    apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(executor=SparkExecutor(spark)))
    assert fingerprint(tmp_path, up_to=snapshot.version) == before
    compacted = Snapshot.load(store)
    plan = plan_z_order(compacted, ["id"])
    apply_rewrite(compacted, plan, run=Run(executor=SparkExecutor(spark)), memory_limit_bytes=1)
    assert fingerprint(tmp_path, up_to=snapshot.version) == before
    assert Snapshot.load(store).version == snapshot.version + 2
