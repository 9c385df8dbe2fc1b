from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core.actions import SetTransaction
from delta_core.dml.write import write_deltalake
from delta_core.errors import (
    ConcurrentAppendError,
    ConcurrentModificationError,
    ConcurrentWriteError,
    InvalidTableError,
    MissingDataFileError,
    RestoreError,
    VersionNotFoundError,
)
from delta_core.maintenance.restore import apply_restore, plan_restore
from delta_core.run import Run
from delta_core.snapshot.history import history
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction

MakeTable = Callable[..., Path]


def test_the_plan_is_the_exact_difference(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=4)
    deltalake.DeltaTable(str(path)).delete("id >= 30")
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=1)
    assert plan.predicted() == {
        "files_added": 0,
        "files_removed": 1,
        "bytes_added": 0,
        "bytes_removed": sum(f.size_bytes for f in plan.removed),
        "rows_added": 0,
        "rows_removed": 10,
        "files_missing": 0,
        "commits_undone": 3,
    }
    assert [commit.version for commit in plan.lost_commits] == [4, 3, 2]
    assert plan.lost_commits[0].operation == "DELETE"
    assert json.loads(json.dumps(plan.to_json()))["files_after"] == 2
    forward = plan_restore(helpers.snapshot_of(path, version=1), version=3)
    assert forward.predicted()["rows_added"] == 20
    assert forward.lost_commits == ()


def test_the_plan_names_the_keys_that_stay(tmp_path: Path, helpers: Any) -> None:
    def load(number: int, app_id: str) -> Any:
        key = SetTransaction(app_id=app_id, version=number)
        return write_deltalake(tmp_path / "t", pa.table({"id": [number]}), mode="append", txn=key)

    for number, app_id in enumerate(("old", "both", "both", "new")):
        load(number, app_id)
    snapshot = helpers.snapshot_of(tmp_path / "t")
    plan = plan_restore(snapshot, version=1)
    document = plan.to_json()
    assert document["kept_transactions"] == [
        {"app_id": "both", "version": 2},
        {"app_id": "new", "version": 3},
    ]
    assert "new key" in document["transactions_note"]
    apply_restore(snapshot, plan)
    assert load(3, "new").already_applied
    assert not load(3, "new, after rollback 1").already_applied
    unkeyed = plan_restore(snapshot, version=3)
    assert (unkeyed.kept_transactions, unkeyed.transactions_note) == ((), None)


def test_back_and_forward_again(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=4)
    contents = [helpers.content(path, version) for version in range(4)]
    snapshot = helpers.snapshot_of(path)
    back = apply_restore(snapshot, plan_restore(snapshot, version=1))
    assert back.version == 4
    assert helpers.content(path) == contents[1]
    snapshot = helpers.snapshot_of(path)
    forward = apply_restore(snapshot, plan_restore(snapshot, version=3))
    assert forward.version == 5
    assert helpers.content(path) == contents[3]
    assert [helpers.content(path, version) for version in range(4)] == contents


def test_a_plan_that_is_carried_out_again_with_its_key_is_done(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=1)
    properties = CommitProperties(txn=SetTransaction(app_id="rollback", version=1))
    assert apply_restore(snapshot, plan, run=Run(commit=properties), expected_version=2).version == 3
    write_deltalake(path, helpers.rows(50, 6), mode="append")
    again = apply_restore(snapshot, plan, run=Run(commit=properties), expected_version=2)
    assert again.committed is not None
    assert again.committed.already_applied
    assert (again.version, helpers.snapshot_of(path).version) == (None, 4)


def test_the_commit_changes_data_and_has_delta_sparks_figures(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    snapshot = helpers.snapshot_of(path)
    apply_restore(snapshot, plan_restore(snapshot, version=0))
    lines = (path / "_delta_log" / f"{3:020}.json").read_text().splitlines()
    removes = [json.loads(line)["remove"] for line in lines if "remove" in json.loads(line)]
    assert len(removes) == 2
    assert all(remove["dataChange"] for remove in removes)
    info = history(helpers.snapshot_of(path), limit=1)[0].commit_info
    assert (info.operation, info.operation_parameters) == ("RESTORE", {"version": "0"})
    assert info.operation_metrics["numRemovedFiles"] == "2"
    assert info.operation_metrics["numOfFilesAfterRestore"] == "1"


def test_by_timestamp(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    moment = history(helpers.snapshot_of(path))[1].timestamp_ms
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, timestamp_ms=moment)
    assert plan.target_version == 1
    apply_restore(snapshot, plan, by_timestamp=True)
    info = history(helpers.snapshot_of(path), limit=1)[0].commit_info
    assert list(info.operation_parameters) == ["timestamp"]


def test_schema_and_properties_come_back_and_the_identity_stays(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    deltalake.write_deltalake(
        str(path), pa.table({"id": [1]}), configuration={"delta.checkpointInterval": "5"}
    )
    identity = helpers.snapshot_of(path).metadata.id
    deltalake.write_deltalake(
        str(path), pa.table({"other": ["x"]}), mode="overwrite", schema_mode="overwrite"
    )
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=0)
    assert plan.metadata_changes
    apply_restore(snapshot, plan)
    after = helpers.snapshot_of(path)
    assert list(after.schema.names) == ["id"]
    assert after.metadata.id == identity
    assert after.properties.checkpoint_interval == 5
    assert deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist() == [{"id": 1}]


def test_missing_files_stop_it_unless_they_are_ignored(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=3)
    gone = helpers.snapshot_of(path, version=0).files.to_table(["path"])["path"][0].as_py()
    deltalake.DeltaTable(str(path)).delete()
    (path / gone).unlink()
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=2)
    assert plan.missing == (gone,)
    with pytest.raises(MissingDataFileError, match="of version 2 are missing in the store: 1, such as"):
        apply_restore(snapshot, plan)
    result = apply_restore(snapshot, plan, ignore_missing_files=True)
    assert result.files_added == 2
    assert len(helpers.content(path)) == 20


class Vacuums:
    """Begins a vacuum before the restore's commit is written, or lets one that had begun delete on."""

    def __init__(self, path: Path, helpers: Any, *, file: str, start: bool, at: CommitPhase) -> None:
        self.path, self.helpers, self.file, self.start, self.at = path, helpers, file, start, at

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is not self.at:
            return
        if self.start:
            snapshot = self.helpers.snapshot_of(self.path)
            Transaction.begin(snapshot, operation="VACUUM START").commit()
        (self.path / self.file).unlink()


def test_a_vacuum_that_begins_meanwhile_stops_it(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2)
    file = helpers.snapshot_of(path, version=0).files.to_table(["path"])["path"][0].as_py()
    deltalake.DeltaTable(str(path)).delete()
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=1)
    vacuum = Vacuums(path, helpers, file=file, start=True, at=CommitPhase.BEFORE_PUT)
    with pytest.raises(ConcurrentWriteError, match="A vacuum began in version 3"):
        apply_restore(snapshot, plan, run=Run(observer=vacuum))
    assert helpers.snapshot_of(path).version == 3


def test_a_vacuum_that_was_under_way_is_noticed(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=2)
    file = helpers.snapshot_of(path, version=0).files.to_table(["path"])["path"][0].as_py()
    deltalake.DeltaTable(str(path)).delete()
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=1)
    vacuum = Vacuums(path, helpers, file=file, start=False, at=CommitPhase.COMMITTED)
    with pytest.raises(
        MissingDataFileError, match="committed as version 3, but the store no longer has 1 of"
    ):
        apply_restore(snapshot, plan, run=Run(observer=vacuum))
    snapshot = helpers.snapshot_of(path)
    apply_restore(snapshot, plan_restore(snapshot, version=2))
    assert len(helpers.content(path)) == 0


def test_a_file_of_another_size_counts_as_missing(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=1)
    file = helpers.snapshot_of(path).files.to_table(["path"])["path"][0].as_py()
    deltalake.DeltaTable(str(path)).delete()
    (path / file).write_bytes(b"cut off")
    assert plan_restore(helpers.snapshot_of(path), version=0).missing == (file,)


def test_nothing_to_do_commits_nothing(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=3)
    assert plan.is_empty
    assert apply_restore(snapshot, plan).version is None


def test_a_commit_after_the_plan_stops_it(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    plan = plan_restore(snapshot, version=1)
    deltalake.write_deltalake(str(path), helpers.rows(100, 5), mode="append")
    with pytest.raises(ConcurrentModificationError, match="table changed"):
        apply_restore(snapshot, plan)


def test_an_append_during_the_commit_conflicts(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)

    class AppendsJustBefore:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.PREPARED:
                deltalake.write_deltalake(str(path), helpers.rows(100, 5), mode="append")

    with pytest.raises(ConcurrentAppendError):
        apply_restore(snapshot, plan_restore(snapshot, version=1), run=Run(observer=AppendsJustBefore()))
    assert len(helpers.content(path)) == 45


def test_what_cannot_be_asked(make_table: MakeTable, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(make_table())
    with pytest.raises(RestoreError):
        plan_restore(snapshot)
    with pytest.raises(RestoreError):
        plan_restore(snapshot, version=1, timestamp_ms=1)
    with pytest.raises(VersionNotFoundError):
        plan_restore(snapshot, version=99)


def test_an_append_only_table_keeps_its_rows(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    for number in range(2):
        deltalake.write_deltalake(
            str(path), helpers.rows(number, 1), mode="append", configuration={"delta.appendOnly": "true"}
        )
    snapshot = helpers.snapshot_of(path)
    with pytest.raises(InvalidTableError, match="append-only"):
        apply_restore(snapshot, plan_restore(snapshot, version=0))
