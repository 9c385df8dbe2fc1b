"""REORG ... APPLY (PURGE): no file of the newest version holds a deleted row, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.errors import ConfigurationError, ExpressionError, MaintenanceError
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.purge import PurgePlan, plan_purge
from delta_core.run import Run
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.file_actions import add_actions
from tests.support.preserved_tables import TABLES, AcrossProcesses, Fingerprint, build, delete, fingerprint


def snapshot_of(root: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(root))


@pytest.mark.parametrize("name", ["tracked", "mapped by name", "mapped by id"])
def test_rows_ids_versions_and_changes_are_the_same(tmp_path: Path, name: str) -> None:
    build(tmp_path, TABLES[name])
    before = snapshot_of(tmp_path)
    expected: Fingerprint = fingerprint(tmp_path, up_to=before.version)
    plan = plan_purge(before)
    plan = PurgePlan.from_json(json.loads(json.dumps(plan.to_json())))
    assert (plan.num_files, plan.deleted_rows) == (3, 7)
    result = apply_rewrite(before, plan, run=Run(executor=AcrossProcesses()))
    after = snapshot_of(tmp_path)
    assert result.version == after.version == before.version + 1
    assert fingerprint(tmp_path, up_to=before.version) == expected
    files = list(add_actions(after.files.to_table(), data_change=True))
    assert not any(file.deletion_vector for file in files)
    untouched = set(before.files.to_table(["path"])["path"].to_pylist()) & {file.path for file in files}
    assert len(untouched) == before.files.num_files - 3, "files without vectors stay"
    assert sum(
        pq.read_metadata(tmp_path / file.path.replace("%20", " ").replace("%3D", "=")).num_rows
        for file in files
    ) == len(expected.rows)
    assert result.metrics["deletionVectorStats"] == {
        "numDeletionVectorsRemoved": 3,
        "numDeletionVectorRowsRemoved": 7,
    }
    info = history(after, limit=1)[0].commit_info
    assert info.operation == "REORG"
    assert info.operation_parameters == {"predicate": "[]", "applyPurge": "true"}
    assert int(info.operation_metrics["numDeletionVectorsRemoved"]) == 3


def test_a_second_purge_finds_nothing_and_commits_nothing(tmp_path: Path) -> None:
    build(tmp_path, TABLES["mapped by name"])
    table = DeltaTable(tmp_path)
    assert table.optimize.purge()["numFilesRemoved"] == 3
    version = table.version()
    assert table.optimize.plan_purge().is_empty
    assert table.optimize.purge()["numFilesRemoved"] == 0
    assert table.version() == version


def test_a_predicate_chooses_partitions(tmp_path: Path) -> None:
    build(tmp_path, TABLES["mapped by name"])
    table = DeltaTable(tmp_path)
    plans = [table.optimize.plan_purge(text) for text in ("part = 'a'", "part IS NULL")]
    assert sorted(plan.num_files for plan in plans) != [3, 3]
    assert sum(plan.num_files for plan in plans) == 3
    assert {value for plan in plans for item in plan.bins for value in item.partition_values} == {"col-part"}
    with pytest.raises(ExpressionError, match="not partitioned by: id"):
        table.optimize.purge("id = 1")


def test_deletions_after_the_plan_are_purged_too(tmp_path: Path) -> None:
    build(tmp_path, TABLES["tracked"])
    planned = snapshot_of(tmp_path)
    plan = plan_purge(planned, target_size_bytes=1)
    assert len(plan.bins) == 3, "each file is a bin of its own"
    delete(tmp_path, [20, 21], files=1)
    version = snapshot_of(tmp_path).version
    before = fingerprint(tmp_path, up_to=version)
    apply_rewrite(planned, plan)
    assert fingerprint(tmp_path, up_to=version) == before


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    build(tmp_path / "a", TABLES["tracked"], appends=2)
    snapshot = snapshot_of(tmp_path / "a")
    with pytest.raises(ConfigurationError):
        plan_purge(snapshot, target_size_bytes=0)
    document = plan_purge(snapshot).to_json()
    with pytest.raises(MaintenanceError, match="another table"):
        apply_rewrite(snapshot, PurgePlan.from_json({**document, "table_id": "other"}))
    del document["bins"]
    with pytest.raises(MaintenanceError):
        PurgePlan.from_json(document)
    with pytest.raises(MaintenanceError):
        PurgePlan.from_json({**document, "plan": "compaction"})
