from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions.set_transaction import SetTransaction
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.errors import (
    ConfigurationError,
    MaintenanceError,
    PathEscapeError,
    RetentionTooShortError,
    StorageError,
    UnsupportedTableFeatureError,
)
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.restore import apply_restore, plan_restore
from delta_core.maintenance.vacuum import VacuumFile, VacuumPlan, apply_vacuum, plan_vacuum
from delta_core.maintenance.vacuum.listing import FileKind, classify
from delta_core.maintenance.vacuum.path_identity import is_protected, listed_key, protected_keys
from delta_core.run import Run
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_properties import CommitProperties

MakeTable = Callable[..., Path]
DAY_MS = 86_400_000
FORCED = {"retention_hours": 0.0, "enforce_retention": False, "force": True}


def all_files(path: Path) -> set[str]:
    return {str(f.relative_to(path)) for f in path.rglob("*") if f.is_file() and "_delta_log" not in f.parts}


@pytest.fixture
def compacted(make_table: MakeTable, helpers: Any) -> Path:
    """A table whose first four files were removed thirty days ago."""
    path = make_table()
    past = ManualClock(SYSTEM_CLOCK.now_ms() - 30 * DAY_MS)
    snapshot = helpers.snapshot_of(path, clock=past)
    apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(clock=past))
    helpers.age_files(path, 30)
    return path


def test_a_dry_run_names_path_bytes_age_and_reason_and_touches_nothing(compacted: Path, helpers: Any) -> None:
    before = all_files(compacted)
    plan = plan_vacuum(helpers.snapshot_of(compacted))
    assert all_files(compacted) == before
    assert len(plan.files) == 4
    for file in plan.files:
        assert file.size_bytes == (compacted / file.path).stat().st_size
        assert 29.9 * 24 < file.age_hours < 30.1 * 24
        assert file.reason == "removed at version 4, the retention of 168 h passed"
    assert plan.predicted()["files_kept"] == 1


def test_what_is_deleted_is_what_the_dry_run_said(compacted: Path, helpers: Any) -> None:
    rows, before = helpers.content(compacted), all_files(compacted)
    snapshot = helpers.snapshot_of(compacted)
    plan = VacuumPlan.from_json(json.loads(json.dumps(plan_vacuum(snapshot).to_json())))
    result = apply_vacuum(snapshot, plan)
    assert before - all_files(compacted) == {file.path for file in plan.files}
    assert (result.deleted_files, result.deleted_bytes) == (4, plan.total_bytes)
    assert result.kept == ()
    assert helpers.content(compacted) == rows
    assert plan_vacuum(helpers.snapshot_of(compacted)).is_empty, "a second one finds nothing"


def test_start_and_end_are_recorded_as_delta_spark_does(compacted: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(compacted)
    properties = CommitProperties(txn=SetTransaction(app_id="v", version=1))
    result = apply_vacuum(snapshot, plan_vacuum(snapshot), run=Run(commit=properties))
    assert result.commits == (5, 6)
    end, start = (entry.commit_info for entry in history(helpers.snapshot_of(compacted), limit=2))
    assert (start.operation, end.operation) == ("VACUUM START", "VACUUM END")
    assert start.operation_metrics["numFilesToDelete"] == "4"
    assert end.operation_metrics["numDeletedFiles"] == "4"
    assert end.operation_parameters == {"status": "COMPLETED"}
    assert start.operation_parameters["retentionCheckEnabled"] == "true"
    assert helpers.snapshot_of(compacted).transactions["v"].version == 1


def test_lite_deletes_what_the_log_removed_without_a_listing(
    compacted: Path, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = helpers.content(compacted)
    (compacted / "stray.parquet").write_bytes(b"x")
    helpers.age_files(compacted, 30)
    full = {file.path for file in plan_vacuum(helpers.snapshot_of(compacted)).files}
    monkeypatch.setattr("delta_core.maintenance.vacuum.plan.listed_files", None)
    plan = plan_vacuum(helpers.snapshot_of(compacted), lite=True)
    assert full - {file.path for file in plan.files} == {"stray.parquet"}
    assert plan.files[0].reason == "removed at version 4, the retention of 168 h passed"
    result = apply_vacuum(helpers.snapshot_of(compacted), plan)
    assert result.deleted_files == 4
    assert helpers.content(compacted) == rows
    assert plan_vacuum(helpers.snapshot_of(compacted), lite=True).is_empty


def test_lite_keeps_what_the_retention_and_live_versions_need(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    assert plan_vacuum(helpers.snapshot_of(path), lite=True).is_empty
    snapshot = helpers.snapshot_of(path)
    apply_restore(snapshot, plan_restore(snapshot, version=0))
    live = set(helpers.snapshot_of(path).files.to_table(["path"])["path"].to_pylist())
    later = ManualClock(SYSTEM_CLOCK.now_ms() + 30 * DAY_MS)
    planned = {file.path for file in plan_vacuum(helpers.snapshot_of(path), lite=True, clock=later).files}
    assert planned
    assert not planned & live


def test_nothing_to_delete_commits_nothing(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    assert apply_vacuum(snapshot, plan_vacuum(snapshot)).commits == ()
    assert helpers.snapshot_of(path).version == 3


@pytest.mark.parametrize(
    "options",
    [
        {"retention_hours": 167.9},
        {"retention_hours": 0.0},
        {"retention_hours": 0.0, "enforce_retention": False},
        {"retention_hours": 0.0, "force": True},
    ],
)
def test_a_short_retention_needs_both_flags(
    make_table: MakeTable, helpers: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(RetentionTooShortError, match="required"):
        plan_vacuum(helpers.snapshot_of(make_table()), **options)


def test_a_longer_table_retention_is_protected_too(tmp_path: Path, helpers: Any) -> None:
    path = tmp_path / "t"
    deltalake.write_deltalake(
        str(path),
        helpers.rows(0, 5),
        configuration={"delta.deletedFileRetentionDuration": "interval 30 days"},
    )
    with pytest.raises(RetentionTooShortError, match="720 hours"):
        plan_vacuum(helpers.snapshot_of(path), retention_hours=200)
    for impossible in (-1, float("nan"), float("inf")):
        with pytest.raises(ConfigurationError):
            plan_vacuum(helpers.snapshot_of(path), retention_hours=impossible)


def test_young_files_stay_even_when_the_log_does_not_know_them(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    (path / "part-uncommitted.parquet").write_bytes(b"someone is still writing")
    assert plan_vacuum(helpers.snapshot_of(path)).is_empty
    old = SYSTEM_CLOCK.now_ms() / 1000 - 8 * 86_400
    os.utime(path / "part-uncommitted.parquet", (old, old))
    (file,) = plan_vacuum(helpers.snapshot_of(path)).files
    assert file.reason == "not referenced by the table, older than 168 h"


def test_a_file_committed_while_the_files_are_listed_is_not_planned(
    make_table: MakeTable, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that took longer than the retention commits its files between the snapshot and the plan."""
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    real = LocalLogStore.walk

    def walk(self: LocalLogStore, below: str = "") -> Any:
        deltalake.write_deltalake(str(path), helpers.rows(100, 110), mode="append")
        helpers.age_files(path, 30)
        yield from real(self, below)

    monkeypatch.setattr(LocalLogStore, "walk", walk)
    plan = plan_vacuum(snapshot)
    assert plan.version == snapshot.version + 1
    assert plan.listed_files == 5
    assert plan.is_empty


@pytest.mark.parametrize(("minutes", "goes"), [(4, False), (6, True)])
def test_files_close_to_the_limit_stay(make_table: MakeTable, helpers: Any, minutes: int, goes: bool) -> None:
    """Clocks of a writer, a store and this machine differ by some minutes."""
    path = make_table()
    now_ms = SYSTEM_CLOCK.now_ms()
    at = (now_ms - 7 * DAY_MS) / 1000 - minutes * 60
    (path / "orphan.parquet").write_bytes(b"x")
    os.utime(path / "orphan.parquet", (at, at))
    plan = plan_vacuum(helpers.snapshot_of(path), clock=ManualClock(now_ms))
    assert [file.path for file in plan.files] == (["orphan.parquet"] if goes else [])


def test_a_file_of_the_very_moment_stays(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=1)
    now_ms = SYSTEM_CLOCK.now_ms() // 1000 * 1000
    at = now_ms // 1000 - 7 * 86_400 - 300
    (path / "orphan.parquet").write_bytes(b"x")
    os.utime(path / "orphan.parquet", (at, at))
    assert plan_vacuum(helpers.snapshot_of(path), clock=ManualClock(now_ms)).is_empty
    later = plan_vacuum(helpers.snapshot_of(path), clock=ManualClock(now_ms + 1))
    assert [file.path for file in later.files] == ["orphan.parquet"]


def test_a_file_removed_within_the_retention_stays_however_old_it_is(
    make_table: MakeTable, helpers: Any
) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    helpers.age_files(path, 400)
    assert plan_vacuum(helpers.snapshot_of(path)).is_empty


@pytest.mark.parametrize("checkpoint_by", ["us, by the short retention", "one whose clock is ahead"])
def test_tombstones_that_a_checkpoint_lacks_are_read_from_the_log(
    tmp_path: Path, helpers: Any, checkpoint_by: str
) -> None:
    short = {"delta.deletedFileRetentionDuration": "interval 1 days"}
    path, now_ms = tmp_path / "t", SYSTEM_CLOCK.now_ms()
    write_deltalake(path, pa.table({"a": [1]}), configuration=short, clock=ManualClock(now_ms - 30 * DAY_MS))
    removed = ManualClock(now_ms - 3 * DAY_MS)
    write_deltalake(path, pa.table({"a": [2]}), mode="overwrite", clock=removed)
    helpers.age_files(path, 30)
    for version, days in ((0, 30), (1, 3)):
        written_ms = now_ms - days * DAY_MS
        os.utime(path / "_delta_log" / f"{version:020d}.json", (written_ms / 1000, written_ms / 1000))
    if checkpoint_by.startswith("us"):
        write_checkpoint(helpers.snapshot_of(path))
        DeltaTable(path).alter.unset_properties(list(short))
    else:
        DeltaTable(path).alter.unset_properties(list(short))
        write_checkpoint(helpers.snapshot_of(path, clock=ManualClock(now_ms + 8 * DAY_MS)))
    assert plan_vacuum(helpers.snapshot_of(path)).is_empty
    plan = plan_vacuum(helpers.snapshot_of(path), clock=ManualClock(now_ms + 5 * DAY_MS))
    assert len(plan.files) == 1
    apply_vacuum(helpers.snapshot_of(path), plan)
    assert DeltaTable(path, version=0).to_pyarrow_table().num_rows == 1


def test_a_clock_that_is_ahead_costs_no_file_that_was_just_removed(tmp_path: Path, helpers: Any) -> None:
    path, ahead = tmp_path / "t", ManualClock(SYSTEM_CLOCK.now_ms() + 8 * DAY_MS)
    write_deltalake(path, pa.table({"a": [1]}))
    helpers.age_files(path, 30)
    write_deltalake(path, pa.table({"a": [2]}), mode="overwrite")
    plan = plan_vacuum(helpers.snapshot_of(path), clock=ahead)
    assert len(plan.files) == 1
    result = apply_vacuum(helpers.snapshot_of(path), plan, run=Run(clock=ahead))
    assert (result.deleted_files, result.kept) == (0, (plan.files[0].path,))
    assert DeltaTable(path, version=0).to_pyarrow_table().num_rows == 1


def test_a_longer_retention_looks_into_the_log_when_tombstones_are_gone(
    compacted: Path, helpers: Any
) -> None:
    helpers.snapshot_of(compacted)
    deltalake.DeltaTable(str(compacted)).create_checkpoint()
    helpers.age_files(compacted, 400)
    assert plan_vacuum(helpers.snapshot_of(compacted), retention_hours=24 * 60).is_empty


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("part-1.parquet", FileKind.DATA),
        ("day=1/part-1.parquet", FileKind.DATA),
        ("_day=1/part-1.parquet", FileKind.DATA),
        ("_other=1/part-1.parquet", FileKind.KEPT),
        ("_delta_log/00000000000000000000.json", FileKind.KEPT),
        ("_delta_log/_temporary/0/x", FileKind.KEPT),
        ("_deltaward/lease/1.json", FileKind.KEPT),
        ("_change_data/x.parquet", FileKind.CHANGE_DATA),
        ("_change_data/day=1/x.parquet", FileKind.CHANGE_DATA),
        ("_change_data/_day=1/x.parquet", FileKind.CHANGE_DATA),
        ("_change_data/_other/x.parquet", FileKind.KEPT),
        ("_change_data/.x.parquet.crc", FileKind.KEPT),
        ("_change_data", FileKind.KEPT),
        ("_change_data2/x.parquet", FileKind.KEPT),
        ("day=1/_change_data/x.parquet", FileKind.KEPT),
        ("_SUCCESS", FileKind.KEPT),
        (".part-1.parquet.crc", FileKind.KEPT),
        (".hidden/part-1.parquet", FileKind.KEPT),
        ("_temporary/0/part-1.parquet", FileKind.KEPT),
        ("0f3-job/_temporary/0/_x/part-1.parquet", FileKind.STAGING),
        ("0f3-job/part-1.parquet", FileKind.DATA),
        ("day=1/_temporary/0/part-1.parquet", FileKind.KEPT),
        ("deletion_vector_1.bin", FileKind.DATA),
        ("aB/deletion_vector_1.bin", FileKind.DATA),
    ],
)
def test_names_decide_what_is_looked_at(path: str, kind: FileKind) -> None:
    assert classify(path, partition_columns=["day", "_day"]) is kind


def test_leftovers_of_a_killed_job_go_with_a_reason_and_others_hidden_files_stay(
    make_table: MakeTable, helpers: Any
) -> None:
    path = make_table()
    old = SYSTEM_CLOCK.now_ms() / 1000 - 9 * 86_400
    for name in (
        "job-1/_temporary/0/task/part-0.parquet",
        "_other/x.parquet",
        "_deltaward/x",
        ".x/y.parquet",
    ):
        file = path / name
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x")
        os.utime(file, (old, old))
    (found,) = plan_vacuum(helpers.snapshot_of(path)).files
    assert found.path.startswith("job-1/")
    assert "unfinished file of a job" in found.reason


def test_links_are_neither_followed_nor_deleted(make_table: MakeTable, helpers: Any, tmp_path: Path) -> None:
    path = make_table()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"x")
    os.utime(outside / "precious.parquet", (0, 0))
    (path / "linked").symlink_to(outside, target_is_directory=True)
    (path / "link.parquet").symlink_to(outside / "precious.parquet")
    snapshot = helpers.snapshot_of(path)
    plan = plan_vacuum(snapshot)
    assert plan.is_empty
    forged = VacuumFile(
        path="linked/precious.parquet", size_bytes=1, modified_ms=0, age_hours=1.0, reason="forged"
    )
    with_link = replace(plan, files=(forged,))
    with pytest.raises(PathEscapeError):
        apply_vacuum(snapshot, with_link)
    assert (outside / "precious.parquet").exists()


@pytest.mark.parametrize(
    ("raw", "listed"),
    [
        ("a b.parquet", "a b.parquet"),
        ("a%20b.parquet", "a b.parquet"),
        ("a%20b.parquet", "a%20b.parquet"),
        ("a%2520b.parquet", "a%20b.parquet"),
        ("a%2520b.parquet", "a b.parquet"),
        ("p=1//x.parquet", "p=1/x.parquet"),
        ("./x.parquet", "x.parquet"),
        ("p=1\\x.parquet", "p=1/x.parquet"),
        ("p=1\\x.parquet", "p=1\\x.parquet"),
        ("file:///table/x.parquet", "x.parquet"),
        ("/table/x.parquet", "x.parquet"),
        ("p=u\u0308/x.parquet", "p=\u00fc/x.parquet"),
        ("p=%C3%BC/x.parquet", "p=u\u0308/x.parquet"),
    ],
)
def test_every_spelling_of_a_live_path_protects_its_file(raw: str, listed: str) -> None:
    assert listed_key(listed) in protected_keys([raw], root_uri="file:///table")


@pytest.mark.parametrize(
    "raw", ["../x", "%2e%2e/x", "s3://bucket/x", "/etc/x", "file:///etc/x", "file://host/table/x", "..\\x"]
)
def test_a_path_that_seems_to_lead_out_protects_what_is_called_so(raw: str) -> None:
    keys = protected_keys([raw, "ok.parquet"], root_uri="file:///table")
    assert is_protected("ok.parquet", keys)
    assert is_protected("p=1/x", keys)
    assert not is_protected("y", keys)


@pytest.mark.parametrize(
    ("raw", "root_uri"),
    [
        ("hdfs://nameservice1/t/x.parquet", "hdfs://nn1:8020/t"),
        ("hdfs://nn1:8020/t/x.parquet", "webhdfs://nn1:9870/t"),
        ("/t/x.parquet", "hdfs://nn1:8020/t"),
        ("/t/x.parquet", "s3://b/t"),
        (
            "wasbs://c@acct.blob.core.windows.net/t/x.parquet",
            "abfss://c@acct.dfs.core.windows.net/t",
        ),
    ],
)
def test_another_name_of_the_same_store_protects_the_file(raw: str, root_uri: str) -> None:
    assert is_protected("x.parquet", protected_keys([raw], root_uri=root_uri))


def test_a_path_with_a_nul_breaks_nothing() -> None:
    assert is_protected("ok.parquet", protected_keys(["a\0b", "ok.parquet"], root_uri="file:///table"))


@pytest.mark.parametrize("spelled", ["x/../{name}", "file://host{root}/{name}", "//{root}/{name}"])
def test_a_live_file_stays_however_its_path_is_spelled(tmp_path: Path, helpers: Any, spelled: str) -> None:
    uri = tmp_path / "t"
    for value in (1, 2):
        deltalake.write_deltalake(uri, pa.table({"a": [value]}), mode="append")
    commit = uri / "_delta_log" / f"{1:020}.json"
    (name,) = {json.loads(line)["add"]["path"] for line in commit.read_text().splitlines() if '"add"' in line}
    commit.write_text(
        commit.read_text().replace(f'"path":"{name}"', f'"path":"{spelled.format(name=name, root=uri)}"')
    )
    helpers.age_files(uri, 30)
    snapshot = helpers.snapshot_of(uri)
    assert apply_vacuum(snapshot, plan_vacuum(snapshot)).deleted_files == 0
    assert (uri / name).exists()


def test_a_file_that_a_restore_brought_back_is_kept(compacted: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(compacted)
    plan = plan_vacuum(snapshot)
    apply_restore(snapshot, plan_restore(snapshot, version=3))
    result = apply_vacuum(snapshot, plan)
    assert result.deleted_files == 0
    assert set(result.kept) == {file.path for file in plan.files}
    assert len(helpers.content(compacted)) == 40


def test_a_file_that_was_written_anew_is_kept(compacted: Path, helpers: Any) -> None:
    snapshot = helpers.snapshot_of(compacted)
    plan = plan_vacuum(snapshot)
    (compacted / plan.files[0].path).write_bytes(b"new content")
    result = apply_vacuum(snapshot, plan)
    assert result.kept == (plan.files[0].path,)
    assert result.deleted_files == 3


def test_a_store_whose_clock_is_behind_deletes_nothing_too_young(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    snapshot = helpers.snapshot_of(path)
    apply_rewrite(snapshot, plan_compaction(snapshot))
    ahead = ManualClock(SYSTEM_CLOCK.now_ms() + 30 * DAY_MS)
    snapshot = Snapshot.load(LocalLogStore(path), clock=ahead)
    plan = plan_vacuum(snapshot, clock=ahead)
    assert len(plan.files) == 4, "by this machine's clock they are old"
    result = apply_vacuum(snapshot, plan)
    assert result.deleted_files == 0
    assert len(result.kept) == 4


def test_a_listing_that_fails_plans_nothing(
    compacted: Path, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: LocalLogStore, path: str = "") -> Any:
        yield from ()
        if not path:
            raise StorageError("the listing broke off")

    before = all_files(compacted)
    snapshot = helpers.snapshot_of(compacted)
    monkeypatch.setattr(LocalLogStore, "walk", broken)
    with pytest.raises(StorageError, match="broke off"):
        plan_vacuum(snapshot)
    assert all_files(compacted) == before


def test_a_deletion_that_fails_ends_the_vacuum_and_is_recorded(
    compacted: Path, helpers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = helpers.snapshot_of(compacted)
    plan = plan_vacuum(snapshot)

    def broken(self: LocalLogStore, path: str) -> None:
        raise StorageError("no more deletions")

    monkeypatch.setattr(LocalLogStore, "delete", broken)
    with pytest.raises(StorageError, match="no more"):
        apply_vacuum(snapshot, plan)
    end = history(helpers.snapshot_of(compacted), limit=1)[0].commit_info
    assert end.operation_parameters == {"status": "FAILED"}
    assert len(helpers.content(compacted)) == 40


def test_an_unknown_writer_feature_is_refused(make_table: MakeTable, helpers: Any) -> None:
    path = make_table()
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["fancyThings"]}}
    (path / "_delta_log" / f"{4:020}.json").write_text(json.dumps(protocol) + "\n")
    with pytest.raises(UnsupportedTableFeatureError, match="fancyThings"):
        plan_vacuum(helpers.snapshot_of(path), **FORCED)


def test_a_plan_for_another_table_is_refused(compacted: Path, make_table: MakeTable, helpers: Any) -> None:
    plan = plan_vacuum(helpers.snapshot_of(compacted))
    with pytest.raises(MaintenanceError, match="another table"):
        apply_vacuum(helpers.snapshot_of(make_table(name="other")), plan)
    with pytest.raises(MaintenanceError):
        VacuumPlan.from_json({"plan": "compaction", "format_version": 1})


def test_many_files_go_in_groups(make_table: MakeTable, helpers: Any) -> None:
    path = make_table(commits=1)
    for number in range(600):
        (path / f"orphan-{number:04}.parquet").write_bytes(b"x")
        os.utime(path / f"orphan-{number:04}.parquet", (1, 1))
    snapshot = helpers.snapshot_of(path)
    result = apply_vacuum(snapshot, plan_vacuum(snapshot))
    assert result.deleted_files == 600
    assert len(all_files(path)) == 1
