"""Auto-compaction: what is due, the job and its lease, and the process beside the writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_core import DeltaTable, write_deltalake
from delta_core.cli.app import app
from delta_core.cli.auto_compact_command import rounds
from delta_core.errors import ConfigurationError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.kinds.auto_compact import AUTO_COMPACTION_LEASE
from delta_core.jobs.run_job import run_job
from delta_core.leases.lease import acquire_lease
from delta_core.maintenance.clustering import ClusteringPlan
from delta_core.maintenance.compaction.auto import asks_for_auto_compaction, plan_auto_compaction
from delta_core.storage.local import LocalLogStore

ON = {"delta.autoOptimize.autoCompact": "true"}


def make(root: Path, *, files: int = 6, **options: Any) -> DeltaTable:
    """A table with so many files in partition a, and two in b."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table = DeltaTable.create(root, schema=schema, **options)
    for number, partition in enumerate(["a"] * files + ["b"] * 2):
        write_deltalake(root, pa.table({"id": [number], "p": [partition]}, schema), mode="append")
    return DeltaTable(table.table_uri)


def job(root: Path, **params: Any) -> JobResult:
    lease = params.pop("lease", AUTO_COMPACTION_LEASE)
    spec = JobSpec(kind="auto_compact", table=TableRef(uri=str(root)), params=params, lease=lease)
    return run_job(spec, JobContext())


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, False),
        (ON, True),
        ({"delta.autoOptimize.autoCompact": "auto"}, True),
        ({"delta.autoOptimize": "true"}, True),
        ({"delta.autoOptimize": "true", "delta.autoOptimize.autoCompact": "false"}, False),
    ],
)
def test_the_properties_decide(tmp_path: Path, properties: dict[str, str], expected: bool) -> None:
    table = make(tmp_path, files=1, configuration=properties)
    assert asks_for_auto_compaction(table.snapshot) is expected


def test_only_partitions_with_many_small_files_are_due(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["p"])
    plan = plan_auto_compaction(table.snapshot, min_files=5)
    assert [dict(item.partition_values) for item in plan.bins] == [{"p": "a"}]  # type: ignore[union-attr]
    assert plan_auto_compaction(table.snapshot, min_files=7).is_empty
    assert plan_auto_compaction(table.snapshot).is_empty
    sizes = table.snapshot.files.to_table()["size_bytes"].to_pylist()
    assert plan_auto_compaction(table.snapshot, min_files=5, target_size_bytes=2 * min(sizes)).is_empty
    with pytest.raises(ConfigurationError, match="1 files"):
        plan_auto_compaction(table.snapshot, min_files=1)


def test_a_clustered_table_is_clustered(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=["id"])
    plan = plan_auto_compaction(table.snapshot, min_files=5)
    assert isinstance(plan, ClusteringPlan)
    assert plan.num_files == 8
    assert plan_auto_compaction(table.snapshot, min_files=9).is_empty


def test_the_job(tmp_path: Path) -> None:
    make(tmp_path, configuration=ON, partition_by=["p"])
    done = job(tmp_path, min_files=5)
    assert done.status is JobStatus.SUCCEEDED
    assert (done.metrics.files_removed, done.metrics.files_added) == (6, 1)
    info = DeltaTable(tmp_path).history(1)[0].commit_info
    assert info.operation == "OPTIMIZE"
    assert (info.operation_parameters or {})["auto"] in (True, "true")
    again = job(tmp_path, min_files=5)
    assert (again.commits, again.output["reason"]) == ((), "no partition has many small files")
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 8


def test_what_the_job_leaves_alone(tmp_path: Path) -> None:
    make(tmp_path)
    assert "does not set" in job(tmp_path, min_files=2).output["reason"]
    planned = job(tmp_path, min_files=2, always=True, dry_run=True, lease=None)
    assert planned.predicted["files_removed"] == 8
    assert DeltaTable(tmp_path).version() == 8
    refused = job(tmp_path, always=True, lease=None)
    assert refused.error is not None
    assert "needs a lease" in refused.error.message
    assert job(tmp_path, min_files=2, always=True).commits == (9,)


def test_the_process_beside_the_writers(tmp_path: Path) -> None:
    made = [tmp_path / "on", tmp_path / "off"]
    make(made[0], configuration=ON)
    make(made[1])
    looks = rounds([str(root) for root in made], {"min_files": 5}, every=0.01, limit=2)
    commits = [(Path(table).name, result.commits) for table, result in looks]
    assert commits == [("on", (9,)), ("off", ()), ("on", ()), ("off", ())]


def test_the_command(tmp_path: Path) -> None:
    root = tmp_path / "t"
    make(root, configuration=ON)
    lease = acquire_lease(LocalLogStore(root), AUTO_COMPACTION_LEASE, holder="another", ttl_seconds=60)
    call = ["auto-compact", str(root), "--min-files", "5"]
    shown = CliRunner().invoke(app, call)
    assert (shown.exit_code, "another process compacts it" in shown.output) == (0, True), shown.output
    lease.release()
    shown = CliRunner().invoke(app, call)
    assert (shown.exit_code, "8 files became 1 in version 9" in shown.output) == (0, True), shown.output
    assert "no partition" in CliRunner().invoke(app, call).output
    missing = CliRunner().invoke(app, ["auto-compact", str(tmp_path / "none")])
    assert missing.exit_code == 1
