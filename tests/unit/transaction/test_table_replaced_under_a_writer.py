"""Whoever writes from an old look at a log notices that the table is another one, whatever clocks do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, GroupCommit, write_deltalake
from delta_core.clock import ManualClock
from delta_core.dml.write import HANDLE_MAX_AGE_MS
from delta_core.errors import DeltaError, StaleCommitError, StorageError
from delta_core.maintenance.restore.apply import apply_restore
from delta_core.maintenance.restore.plan import plan_restore
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from tests.support.waiting import PATIENCE_SECONDS

START_MS = 1_800_000_000_000
OURS = pa.table({"a": pa.array([1], pa.int64())})
THEIRS = pa.table({"z": ["another table"]})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest.fixture
def uri(tmp_path: Path, clock: ManualClock) -> str:
    uri = str(tmp_path / "t")
    for _ in range(4):
        write_deltalake(uri, OURS, mode="append", clock=clock)
    return uri


def _replace(uri: str, clock: ManualClock, *, versions: int = 1) -> None:
    shutil.rmtree(uri)
    for _ in range(versions):
        write_deltalake(uri, THEIRS, mode="append", clock=clock)


def _untouched(uri: str, *, versions: int = 1) -> None:
    names = sorted(path.name for path in Path(uri, "_delta_log").glob("*.json"))
    assert names == [f"{version:020d}.json" for version in range(versions)]
    assert DeltaTable(uri).to_pyarrow_table().column("z").to_pylist() == ["another table"] * versions


def _fails(times: int) -> Callable[..., ObjectInfo]:
    left = [times]
    real = LocalLogStore.head

    def head(self: LocalLogStore, path: str) -> ObjectInfo:
        if left[0]:
            left[0] -= 1
            raise StorageError("503")
        return real(self, path)

    return head


@pytest.mark.parametrize("seconds", [-3600, 2], ids=["clock set back", "later"])
def test_an_append_through_a_handle(uri: str, clock: ManualClock, seconds: int) -> None:
    table = DeltaTable(uri, clock=clock)
    _replace(uri, clock)
    clock.advance(seconds)
    with pytest.raises(DeltaError):
        write_deltalake(table, OURS, mode="append", clock=clock)
    _untouched(uri)


@pytest.mark.parametrize("failures", [1, 100])
def test_a_look_that_fails_is_no_leave_to_write(
    uri: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    table = DeltaTable(uri, clock=clock)
    _replace(uri, clock)
    clock.advance(2)
    monkeypatch.setattr(LocalLogStore, "head", _fails(failures))
    with pytest.raises(StaleCommitError if failures == 1 else StorageError):
        write_deltalake(table, OURS, mode="append", clock=clock)
    monkeypatch.undo()
    _untouched(uri)


def test_a_failed_look_does_not_make_a_handle_new(
    uri: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = DeltaTable(uri, clock=clock)
    _replace(uri, clock, versions=6)
    clock.advance(2)

    def fail(*args: object, **options: object) -> None:
        raise StorageError("503")

    monkeypatch.setattr(LocalLogStore, "list_directory", fail)
    with pytest.raises(StorageError):
        table.load_as_version()
    monkeypatch.undo()
    with pytest.raises(DeltaError):
        write_deltalake(table, OURS, mode="append", clock=clock)
    _untouched(uri, versions=6)


def test_a_failed_look_does_not_make_a_group_new(
    uri: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GroupCommit(uri, clock=clock) as group:
        _replace(uri, clock, versions=6)
        clock.advance(61)

        def fail(*args: object, **options: object) -> None:
            raise StorageError("503")

        monkeypatch.setattr(LocalLogStore, "list_directory", fail)
        with pytest.raises(StorageError):
            group.append(OURS).result(timeout=PATIENCE_SECONDS)
        monkeypatch.undo()
        with pytest.raises(DeltaError):
            group.append(OURS).result(timeout=PATIENCE_SECONDS)
    _untouched(uri, versions=6)


def test_a_restore_counts_from_when_the_table_was_read(uri: str, clock: ManualClock) -> None:
    table = DeltaTable(uri, clock=clock)
    plan = plan_restore(table.snapshot, version=1)
    _replace(uri, clock)
    clock.advance(2)
    with pytest.raises(DeltaError):
        apply_restore(table.snapshot, plan)
    _untouched(uri)


def test_refreshing_makes_a_snapshot_known_again(uri: str, clock: ManualClock) -> None:
    snapshot = DeltaTable(uri, clock=clock).snapshot
    clock.advance(100)
    assert snapshot.verified_at_ms == START_MS
    assert snapshot.refresh() is snapshot
    assert snapshot.verified_at_ms == START_MS + 100_000


_CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "overwrite": lambda table: write_deltalake(table, OURS, mode="overwrite"),
    "delete": lambda table: table.delete(),
    "update": lambda table: table.update(updates={"a": "a + 1"}),
    "merge": lambda table: (
        table.merge(OURS, "t.a = s.a", source_alias="s", target_alias="t")
        .when_not_matched_insert_all()
        .execute()
    ),
    "compact": lambda table: table.optimize.compact(),
    "alter": lambda table: table.alter.set_properties({"mine": "1"}),
    "restore": lambda table: table.restore(0),
    "vacuum": lambda table: table.vacuum(dry_run=False),
    "repair": lambda table: table.repair(),
}


@pytest.mark.parametrize("verb", sorted(_CHANGES))
@pytest.mark.parametrize("versions", [1, 6])
def test_no_change_through_a_handle_is_made_to_another_table(
    tmp_path: Path, verb: str, versions: int
) -> None:
    uri = str(tmp_path / "t")
    for _ in range(3):
        write_deltalake(uri, OURS, mode="append")
    change, table = _CHANGES[verb], DeltaTable(uri)
    shutil.rmtree(uri)
    for _ in range(versions):
        write_deltalake(uri, OURS, mode="append")
    for _ in range(2):
        with pytest.raises(StaleCommitError, match="no longer the one"):
            change(table)
    assert (DeltaTable(uri).version(), DeltaTable(uri).count()) == (versions - 1, versions)
    table.update_incremental()
    change(table)


def test_an_old_handle_does_not_append_to_another_table(uri: str, clock: ManualClock) -> None:
    table = DeltaTable(uri, clock=clock)
    shutil.rmtree(uri)
    write_deltalake(uri, OURS, clock=clock)
    clock.advance(HANDLE_MAX_AGE_MS + 1)
    with pytest.raises(StaleCommitError, match="no longer the one"):
        write_deltalake(table, OURS, mode="append", clock=clock)
    assert DeltaTable(uri).count() == 1


def test_a_table_with_a_new_id_in_the_same_log_is_the_same(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, OURS)
    table = DeltaTable(uri)
    lines = (tmp_path / "t/_delta_log" / f"{0:020}.json").read_text().splitlines()
    (document,) = [json.loads(line) for line in lines if line.startswith('{"metaData"')]
    document["metaData"]["id"] = "another"
    (tmp_path / "t/_delta_log" / f"{1:020}.json").write_text(json.dumps(document))
    table.delete()
    assert (table.version(), table.metadata().id) == (2, "another")
