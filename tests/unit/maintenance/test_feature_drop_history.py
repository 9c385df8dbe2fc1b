"""Dropping a feature by deleting the history that uses it, and being stopped on the way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import Protocol
from delta_core.checkpoint.log_cleanup import cleanup_expired_logs
from delta_core.checkpoint.v2 import write_v2_checkpoint
from delta_core.clock import SYSTEM_CLOCK, ManualClock
from delta_core.errors import FeatureRemovalError, NotWrittenError, VersionNotFoundError
from delta_core.leases.pins import pin_version
from delta_core.maintenance.feature_drop import apply, drop
from delta_core.maintenance.feature_drop.history import CleanSince, History
from delta_core.schema.types import LONG
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.upgrade import supported_features
from tests.support.soak import drawn

HOUR = 3_600
NARROW = pa.table({"id": [100], "n": pa.array([1], pa.int32())})
PLAIN = Protocol(min_reader_version=1, min_writer_version=2)


def rows(first: int) -> pa.Table:
    return pa.table({"id": list(range(first, first + 10))})


def make(path: Path, **configuration: str) -> DeltaTable:
    given = {f"delta.{key.replace('__', '.')}": value for key, value in configuration.items()}
    for number in range(3):
        write_deltalake(path, rows(number * 10), mode="append", configuration=given if number == 0 else None)
    table = DeltaTable(path)
    table.delete("id = 3")
    return table


def ids(path: Path) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


def by_peer(path: Path) -> list[int]:
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist())


def age(path: Path, hours: float) -> None:
    """Make every file of the log look as if it had been written that long ago."""
    for file in (path / "_delta_log").iterdir():
        moment = file.stat().st_mtime - hours * HOUR
        os.utime(file, (moment, moment))


def commits(path: Path) -> list[int]:
    return sorted(int(file.stem) for file in (path / "_delta_log").glob("*.json"))


def snapshot_of(path: Path) -> Snapshot:
    return Snapshot.load(LocalLogStore(path))


USED = {
    "deletionVectors": {"enableDeletionVectors": "true"},
    "v2Checkpoint": {"checkpointPolicy": "v2", "checkpointInterval": "2"},
}


@pytest.mark.parametrize("name", sorted(USED))
def test_first_it_says_when_then_the_history_goes(tmp_path: Path, name: str) -> None:
    table = make(tmp_path, **USED[name])
    expected = ids(tmp_path)
    with pytest.raises(FeatureRemovalError, match="cannot be dropped yet") as caught:
        table.alter.drop_feature(name, truncate_history=True)
    assert "kept for 24 hours" in caught.value.cause
    assert "after 20" in caught.value.fix
    assert name in supported_features(DeltaTable(tmp_path).protocol())
    assert commits(tmp_path)[0] == 0
    version = DeltaTable(tmp_path).version()
    with pytest.raises(FeatureRemovalError, match="cannot be dropped yet"):
        table.alter.drop_feature(name, truncate_history=True)
    assert DeltaTable(tmp_path).version() == version, "nothing was left to be done"
    age(tmp_path, 23.9)
    with pytest.raises(FeatureRemovalError, match="cannot be dropped yet"):
        table.alter.drop_feature(name, truncate_history=True)
    age(tmp_path, 0.2)
    table.alter.drop_feature(name, truncate_history=True)
    assert table.protocol() == PLAIN
    assert commits(tmp_path)[0] == version
    assert ids(tmp_path) == by_peer(tmp_path) == expected
    with pytest.raises(VersionNotFoundError):
        DeltaTable(tmp_path, version=1)
    operations = [entry.commit_info.operation for entry in table.history(2)]
    assert operations == ["DROP FEATURE", "Empty Commit"]
    assert table.history(1)[0].commit_info.operation_parameters["truncateHistory"] == "true"


def test_the_handles_clock_and_the_tables_retention_count(tmp_path: Path) -> None:
    retention = "interval 2 hours"
    make(tmp_path, enableDeletionVectors="true", dropFeatureTruncateHistory__retentionDuration=retention)
    clock = ManualClock(SYSTEM_CLOCK.now_ms())
    table = DeltaTable(tmp_path, clock=clock)
    with pytest.raises(FeatureRemovalError, match="kept for 2 hours"):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    clock.advance(3 * HOUR)
    with pytest.raises(FeatureRemovalError, match="store's clock"):
        # The clock says so, the store's newest file does not: nothing is deleted by one clock alone.
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert commits(tmp_path)[0] == 0
    age(tmp_path, 2.5)
    table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert "deletionVectors" not in supported_features(table.protocol())


def test_a_clean_log_is_not_truncated(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.add_feature("timestampNtz")
    table.alter.drop_feature("timestampNtz", truncate_history=True)
    assert commits(tmp_path)[0] == 0
    assert table.protocol() == PLAIN


def test_a_pinned_version_is_not_taken_away(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors="true")
    with pin_version(snapshot_of(tmp_path), ttl_seconds=600, holder="ann"):
        with pytest.raises(FeatureRemovalError, match="cannot be dropped yet"):
            table.alter.drop_feature("deletionVectors", truncate_history=True)
        age(tmp_path, 25)
        with pytest.raises(FeatureRemovalError, match="protected by the pin of version 3 by ann"):
            table.alter.drop_feature("deletionVectors", truncate_history=True)
    assert commits(tmp_path)[0] == 0


def test_the_protection_is_dropped_with_what_it_protects(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors="true")
    expected = ids(tmp_path)
    dropped = table.alter.drop_feature("deletionVectors").version
    with pytest.raises(FeatureRemovalError, match=rf"before version {dropped} is protected.* begins at 0\."):
        table.alter.drop_feature("checkpointProtection")
    with pytest.raises(FeatureRemovalError, match="cannot be dropped yet"):
        table.alter.drop_feature("checkpointProtection", truncate_history=True)
    assert commits(tmp_path)[0] == 0
    age(tmp_path, 25)
    table.alter.drop_feature("checkpointProtection", truncate_history=True)
    assert table.protocol() == PLAIN
    assert CHECKPOINT_PROTECTION not in table.metadata().configuration
    assert commits(tmp_path)[0] >= dropped
    assert ids(tmp_path) == by_peer(tmp_path) == expected


@pytest.mark.parametrize("truncate_history", [False, True])
def test_a_protected_history_that_is_gone_already(tmp_path: Path, truncate_history: bool) -> None:
    table = make(tmp_path, enableDeletionVectors="true")
    table.alter.drop_feature("deletionVectors")
    age(tmp_path, 25)
    table = DeltaTable(tmp_path)
    write_deltalake(table, rows(90), mode="append")
    cleanup_expired_logs(table.snapshot, retention_ms=HOUR * 1000)
    table.alter.drop_feature("checkpointProtection", truncate_history=truncate_history)
    assert table.protocol() == PLAIN


def test_a_v2_checkpoint_of_the_newest_version_is_left_behind(tmp_path: Path) -> None:
    table = make(tmp_path, **USED["v2Checkpoint"])
    table.alter.unset_properties(["delta.checkpointPolicy"])
    write_deltalake(table, rows(90), mode="append")
    write_v2_checkpoint(table.snapshot)
    newest = table.version()
    table = DeltaTable(tmp_path)
    assert table.snapshot.has_v2_checkpoint
    table.alter.drop_feature("v2Checkpoint")
    assert [entry.commit_info.operation for entry in table.history(2)] == ["DROP FEATURE", "Empty Commit"]
    assert (tmp_path / "_delta_log" / f"{newest + 1:020d}.checkpoint.parquet").exists()
    assert by_peer(tmp_path) == ids(tmp_path)


def test_a_checkpoint_that_fails_afterwards_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(tmp_path, enableDeletionVectors="true")

    def broken(snapshot: Snapshot) -> None:
        raise NotWrittenError("no room")

    # The barrier before the drop is written by the run, the one after it by the drop itself.
    monkeypatch.setattr(apply, "write_checkpoint", broken)
    dropped = table.alter.drop_feature("deletionVectors").version
    assert "checkpoint after dropping a feature failed" in caplog.text
    assert not (tmp_path / "_delta_log" / f"{dropped:020d}.checkpoint.parquet").exists()
    assert by_peer(tmp_path) == ids(tmp_path)


def test_without_the_barrier_nothing_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path, enableDeletionVectors="true")

    def broken(snapshot: Snapshot) -> None:
        raise NotWrittenError("no room")

    monkeypatch.setattr(drop, "write_checkpoint", broken)
    with pytest.raises(NotWrittenError):
        table.alter.drop_feature("deletionVectors")
    monkeypatch.undo()
    assert "deletionVectors" in supported_features(DeltaTable(tmp_path).protocol())
    table.alter.drop_feature("deletionVectors")
    assert by_peer(tmp_path) == ids(tmp_path)


def clean_since(snapshot: Snapshot, feature: str) -> CleanSince:
    return History(feature=feature).clean_since(snapshot)


class TestCleanSince:
    def test_versions_are_judged_one_by_one(self, tmp_path: Path) -> None:
        table = make(tmp_path, enableDeletionVectors="true")
        table.alter.unset_properties(["delta.enableDeletionVectors"])
        assert table.version() == 4
        assert clean_since(table.snapshot, "deletionVectors").version == 4, (
            "the newest is the caller's to judge"
        )
        table.optimize.purge()
        found = clean_since(table.snapshot, "deletionVectors")
        assert (found.oldest_version, found.version) == (0, 5)
        assert found.time_ms is not None
        table.create_checkpoint()
        write_deltalake(table, rows(90), mode="append")
        assert clean_since(table.snapshot, "deletionVectors").version == 5
        for version in range(5):
            (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
        found = clean_since(snapshot_of(tmp_path), "deletionVectors")
        assert (found.oldest_version, found.version) == (5, 5)

    def test_the_oldest_version_may_have_traces_that_only_a_checkpoint_tells(self, tmp_path: Path) -> None:
        table = make(tmp_path, enableDeletionVectors="true")
        table.alter.unset_properties(["delta.enableDeletionVectors"])
        table.create_checkpoint()
        write_deltalake(table, rows(90), mode="append")
        for version in range(4):
            (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
        table = DeltaTable(tmp_path)
        table.optimize.purge()
        found = clean_since(table.snapshot, "deletionVectors")
        assert (found.oldest_version, found.version) == (4, 6)

    def test_a_vector_that_only_a_checkpoint_tells(self, tmp_path: Path) -> None:
        table = make(tmp_path, enableDeletionVectors="true")
        table.alter.unset_properties(["delta.enableDeletionVectors"])
        table.create_checkpoint()
        for version in range(4):
            (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
        table = DeltaTable(tmp_path)
        write_deltalake(table, rows(90), mode="append")
        write_deltalake(table, rows(0), mode="overwrite")
        found = clean_since(table.snapshot, "deletionVectors")
        assert (found.oldest_version, found.version) == (4, 6)

    def test_who_cleans_up_meanwhile_only_takes_history_away(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = make(tmp_path, enableDeletionVectors="true")
        table.alter.unset_properties(["delta.enableDeletionVectors"])
        table.optimize.purge()
        table.create_checkpoint()
        write_deltalake(table, rows(90), mode="append")
        real, left = LocalLogStore.read, [4]

        def read(self: LocalLogStore, path: str) -> bytes:
            for version in range(left.pop() if left else 0):
                (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
            return real(self, path)

        monkeypatch.setattr(LocalLogStore, "read", read)
        found = clean_since(table.snapshot, "deletionVectors")
        assert (found.oldest_version, found.version) == (5, 5)
        assert not left

    def test_a_file_that_came_back_is_a_trace(self, tmp_path: Path) -> None:
        table = make(tmp_path, enableDeletionVectors="true")
        table.restore(2)
        table.alter.unset_properties(["delta.enableDeletionVectors"])
        write_deltalake(table, rows(90), mode="overwrite")
        assert table.version() == 6
        assert clean_since(table.snapshot, "deletionVectors").version == 6


class Killed(BaseException):
    """The process is gone."""


def killing(monkeypatch: pytest.MonkeyPatch, at: int, *, landed: bool) -> Callable[[], int]:
    """The process dies at a change of the store: before it, or right after. Returns how many there were."""
    seen = [0]

    def dying(name: str) -> None:
        real = getattr(LocalLogStore, name)

        def call(self: LocalLogStore, *args: Any, **options: Any) -> Any:
            seen[0] += 1
            if seen[0] == at and not landed:
                raise Killed
            if seen[0] > at:
                raise Killed  # nothing that a dead process does reaches the store
            result = real(self, *args, **options)
            if seen[0] == at:
                raise Killed
            return result

        monkeypatch.setattr(LocalLogStore, name, call)

    for name in ("put_if_absent", "put", "delete"):
        dying(name)
    return lambda: seen[0]


def _drop(table: DeltaTable, name: str, truncate: bool) -> None:
    table.alter.drop_feature(name, truncate_history=truncate)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "truncate", "landed"),
    drawn(
        (
            (name, truncate, landed)
            for name, truncate in (
                ("deletionVectors", False),
                ("rowTracking", False),
                ("v2Checkpoint", False),
                ("columnMapping", False),
                ("typeWidening", False),
                ("deletionVectors", True),
            )
            for landed in (False, True)
        ),
        usual=3,
    ),
)
def test_who_is_killed_leaves_a_table_and_a_second_run_finishes(
    tmp_path: Path, name: str, truncate: bool, landed: bool
) -> None:
    """At every change of the store."""
    others = {
        "rowTracking": {"enableRowTracking": "true"},
        "columnMapping": {"columnMapping__mode": "name"},
        "typeWidening": {"enableTypeWidening": "true"},
    }
    configuration = {**USED, **others}[name]
    steps = 0
    for at in range(1, 60):
        path = tmp_path / str(at)
        table = make(path, **configuration)
        if name == "typeWidening":
            write_deltalake(table, NARROW, mode="append", schema_mode="merge")
            table.alter.change_type("n", LONG)
        expected = ids(path)
        if truncate:
            with pytest.raises(FeatureRemovalError):
                _drop(table, name, truncate)
            age(path, 25)
        with pytest.MonkeyPatch.context() as monkeypatch:
            killing(monkeypatch, at, landed=landed)
            try:
                _drop(DeltaTable(path), name, truncate)
                finished = True
            except Killed:
                finished = False
        assert ids(path) == expected
        if name not in supported_features(DeltaTable(path).protocol()):
            assert by_peer(path) == expected
        else:
            steps += 1
            _drop(DeltaTable(path), name, truncate)
        assert name not in supported_features(DeltaTable(path).protocol())
        assert ids(path) == by_peer(path) == expected
        if finished:
            break
    else:
        pytest.fail("it never came to its end")
    assert steps >= 2
