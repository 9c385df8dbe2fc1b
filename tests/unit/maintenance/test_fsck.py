"""Repairing tables whose data files are gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.actions import RemoveFile, SetTransaction
from delta_core.actions.json_codec import decode_commit
from delta_core.dml.delete import delete_rows
from delta_core.errors import (
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConfigurationError,
    InvalidTableError,
    MaintenanceError,
    MissingDataFileError,
    ObjectNotFoundError,
    StorageError,
)
from delta_core.maintenance.fsck import FsckPlan, apply_fsck, plan_fsck
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.storage.uri import resolve_data_path
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.file_actions import remove_actions
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction
from tests.support.preserved_tables import TABLES, build
from tests.support.stopping_store import Stopped, StoppingStore

KEYED = CommitProperties(txn=SetTransaction(app_id="repairs", version=1))


def files_of(root: Path) -> dict[str, Path]:
    """The live files: where each path of the log leads."""
    snapshot = Snapshot.load(LocalLogStore(root))
    paths = snapshot.files.to_table()["path"].to_pylist()
    return {path: root / resolve_data_path(path, root_uri=snapshot.store.uri) for path in sorted(paths)}


def lose(root: Path, count: int = 1) -> list[str]:
    """Delete the data of some live files."""
    lost = list(files_of(root).items())[:count]
    for _, place in lost:
        place.unlink()
    return [path for path, _ in lost]


def by_deltalake(root: Path) -> list[str]:
    query = QueryBuilder().register("t", PeerTable(str(root)))
    return rows_in(pa.table(query.execute("SELECT * FROM t").read_all()))


def rows_in(table: pa.Table) -> list[str]:
    return sorted(str(sorted(row.items())) for row in table.to_pylist())


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    for number in range(3):
        write_deltalake(tmp_path / "t", pa.table({"id": [number, number + 10]}), mode="append")
    return tmp_path / "t"


def without(root: Path, lost: list[str]) -> list[str]:
    """The rows that are not in these files, taken before they are lost."""
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    table = DeltaTable(copy)
    files = table.snapshot.files.to_table()
    files = files.filter(pa.array([path in lost for path in files["path"].to_pylist()]))
    transaction = Transaction.begin(table.snapshot, operation="DELETE")
    raise_for_result(transaction.add(*remove_actions(files, deletion_timestamp_ms=1)).commit())
    return rows_in(DeltaTable(copy).to_pyarrow_table())


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_other_rows_of_a_table_are_read_again(tmp_path: Path, name: str) -> None:
    root = tmp_path / "t"
    build(root, TABLES[name])
    left = without(root, list(files_of(root))[:2])
    lost = lose(root, 2)
    with pytest.raises(MissingDataFileError, match=r"repair\(\)"):
        DeltaTable(root).to_pyarrow_table()

    table = DeltaTable(root)
    planned = table.repair()
    assert (planned.dry_run, sorted(planned.files_removed)) == (True, lost)
    assert planned.version is None
    assert DeltaTable(root).version() == table.version()
    rows_before = sum(
        row["num_records"] or 0 for row in table.get_add_actions().select(["num_records"]).to_pylist()
    )
    assert 0 < (planned.plan.missing_rows or 0) < rows_before

    names = {tuple(name for name, _ in file.partition_values) for file in planned.plan.missing}
    assert names == {TABLES[name].partition_columns}

    done = table.repair(False)
    assert (done.dry_run, sorted(done.files_removed)) == (False, lost)
    assert done.version == table.version() == planned.plan.version + 1
    assert rows_in(table.to_pyarrow_table()) == left
    assert len(by_deltalake(root)) == len(left)
    assert table.repair(False).committed is None


def test_a_partitioned_table_names_the_partitions_of_what_is_lost(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "p": ["a", "b c", None]})
    write_deltalake(tmp_path / "t", data, partition_by=["p"])
    (lost,) = [path for path in files_of(tmp_path / "t") if "b" in path.split("/")[0]]
    files_of(tmp_path / "t")[lost].unlink()
    table = DeltaTable(tmp_path / "t")
    (file,) = table.repair().plan.missing
    assert (file.path, file.rows, file.partition_values) == (lost, 1, (("p", "b c"),))
    assert file.size_bytes == table.repair().plan.missing_bytes
    table.repair(dry_run=False)
    assert rows_in(PeerTable(str(tmp_path / "t")).to_pyarrow_table()) == rows_in(data.take([0, 2]))


def test_the_commit_says_what_it_is(plain: Path) -> None:
    (lost,) = lose(plain)
    table = DeltaTable(plain)
    result = table.repair(dry_run=False, commit_properties=CommitProperties(user_metadata="a disk died"))
    assert result.metrics == {"dry_run": False, "files_removed": [lost]}
    assert PeerTable(str(plain)).repair(dry_run=True) == {"dry_run": True, "files_removed": []}
    info = table.history(1)[0].commit_info
    assert (info.operation, info.operation_parameters) == ("FSCK", {"dryRun": "false"})
    assert info.operation_metrics["numMissingFiles"] == "1"
    assert info.user_metadata == "a disk died"
    actions = decode_commit((plain / "_delta_log" / f"{table.version():020}.json").read_bytes(), path="it")
    (remove,) = [action for action in actions if isinstance(action, RemoveFile)]
    assert (remove.path, remove.data_change, remove.extended_file_metadata) == (lost, True, True)


def test_what_deltalake_would_take_out_is_what_goes(plain: Path) -> None:
    lose(plain, 2)
    peer = PeerTable(str(plain)).repair(dry_run=True)
    ours = DeltaTable(plain).repair().metrics
    assert sorted(ours["files_removed"]) == sorted(peer["files_removed"])
    assert ours.keys() == peer.keys()


def test_nothing_is_committed_where_nothing_is_missing(plain: Path) -> None:
    result = DeltaTable(plain).repair(dry_run=False, commit_properties=KEYED)
    assert (result.committed, result.files_removed, DeltaTable(plain).version()) == (None, (), 2)


def test_a_key_applies_once(plain: Path) -> None:
    lose(plain)
    assert DeltaTable(plain).repair(False, commit_properties=KEYED).version == 3
    lose(plain)
    again = DeltaTable(plain).repair(False, commit_properties=KEYED)
    assert again.committed is not None
    assert again.committed.already_applied
    assert (again.files_removed, again.version, DeltaTable(plain).version()) == ((), None, 3)


def test_an_append_only_table_keeps_its_files(tmp_path: Path) -> None:
    properties = {"delta.appendOnly": "true"}
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}), configuration=properties)
    lost = lose(tmp_path / "t")
    table = DeltaTable(tmp_path / "t")
    assert list(table.repair().files_removed) == lost
    with pytest.raises(InvalidTableError, match="append-only"):
        table.repair(dry_run=False)
    assert DeltaTable(tmp_path / "t").version() == 0


def test_a_file_that_came_back_stays(plain: Path) -> None:
    (first, place), (second, other) = list(files_of(plain).items())[:2]
    aside = place.rename(plain.parent / "aside")
    other.unlink()
    snapshot = Snapshot.load(LocalLogStore(plain))
    plan = plan_fsck(snapshot)
    assert {file.path for file in plan.missing} == {first, second}
    aside.rename(place)
    assert apply_fsck(snapshot, plan).files_removed == (second,)
    assert first in files_of(plain)


def test_a_file_that_is_no_longer_live_is_left_out(plain: Path) -> None:
    lose(plain)
    snapshot = Snapshot.load(LocalLogStore(plain))
    plan = plan_fsck(snapshot)
    DeltaTable(plain).delete()
    result = apply_fsck(snapshot, plan)
    assert (result.committed, result.files_removed) == (None, ())


class Meanwhile:
    """Does something when a commit is about to be made."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.action: Callable[[], object] | None = action

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        action, self.action = self.action, None
        if action is not None:
            action()


def _compact(root: Path, bytes_of: dict[Path, bytes]) -> None:
    for place, data in bytes_of.items():
        place.write_bytes(data)
    DeltaTable(root).optimize.compact()


@pytest.mark.parametrize("by", ["delete", "compaction", "repair"])
def test_another_writer_who_removes_the_file_is_a_conflict(plain: Path, by: str) -> None:
    place = next(iter(files_of(plain).values()))
    data = place.read_bytes()
    place.unlink()
    others = {
        "delete": lambda: DeltaTable(plain).delete(),
        "compaction": lambda: _compact(plain, {place: data}),
        "repair": lambda: DeltaTable(plain).repair(dry_run=False),
    }
    snapshot = Snapshot.load(LocalLogStore(plain))
    plan = plan_fsck(snapshot)
    with pytest.raises(ConcurrentDeleteDeleteError):
        apply_fsck(snapshot, plan, run=Run(observer=Meanwhile(others[by])))
    assert DeltaTable(plain).version() == snapshot.version + 1


def test_appends_do_not_disturb_it(plain: Path) -> None:
    lose(plain)
    snapshot = Snapshot.load(LocalLogStore(plain))
    append = Meanwhile(lambda: write_deltalake(plain, pa.table({"id": [7]}), mode="append"))
    assert apply_fsck(snapshot, plan_fsck(snapshot), run=Run(observer=append)).version == 4
    assert DeltaTable(plain).to_pyarrow_table().num_rows == 5


def test_a_deletion_that_comes_second_is_a_conflict(plain: Path) -> None:
    lose(plain)
    table = DeltaTable(plain)
    stale = table.snapshot
    repair = Meanwhile(lambda: DeltaTable(plain).repair(dry_run=False))
    with pytest.raises(ConcurrentDeleteReadError):
        delete_rows(stale, None, run=Run(observer=repair))


class Store(LocalLogStore):
    """A store that lists, and answers, as it is told."""

    hidden: frozenset[str] = frozenset()
    lags = False
    looks_until_there: int = 0
    failure: StorageError | None = None
    asked: list[str]

    @property
    def consistent_listing(self) -> bool:
        return not self.lags

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        return (info for info in super().walk(path) if info.path not in self.hidden)

    def head(self, path: str) -> ObjectInfo:
        if path.endswith(".parquet"):
            self.asked.append(path)
            if self.failure is not None:
                raise self.failure
            if len(self.asked) <= self.looks_until_there:
                raise ObjectNotFoundError("It is not there yet.")
        return super().head(path)


def told(root: Path, **told: Any) -> Snapshot:
    store = Store(root)
    store.asked = []
    for name, value in told.items():
        setattr(store, name, value)
    return Snapshot.load(store)


def test_a_file_that_a_listing_does_not_show_is_asked_for_by_its_name(plain: Path) -> None:
    hidden = frozenset(files_of(plain))
    snapshot = told(plain, hidden=hidden)
    assert plan_fsck(snapshot).is_empty
    assert sorted(snapshot.store.asked) == sorted(hidden)  # type: ignore[attr-defined]
    (one,) = lose(plain)
    snapshot = told(plain)
    assert [file.path for file in plan_fsck(snapshot).missing] == [one]
    assert snapshot.store.asked == [one]  # type: ignore[attr-defined]


def test_a_store_that_lags_is_asked_again(plain: Path) -> None:
    hidden = frozenset(list(files_of(plain))[:1])
    assert plan_fsck(told(plain, hidden=hidden, lags=True, looks_until_there=2)).is_empty
    assert not plan_fsck(told(plain, hidden=hidden, looks_until_there=2)).is_empty


def test_a_failure_of_the_store_is_no_missing_file(plain: Path) -> None:
    lose(plain)
    with pytest.raises(StorageError, match="timed out"):
        plan_fsck(told(plain, failure=StorageError("It timed out.")))
    plan = plan_fsck(told(plain))
    with pytest.raises(StorageError, match="timed out"):
        apply_fsck(told(plain, failure=StorageError("It timed out.")), plan)
    assert DeltaTable(plain).version() == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_directory_that_may_not_be_read_hides_nothing(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "p": ["a", "b"]})
    write_deltalake(tmp_path / "t", data, partition_by=["p"])
    (tmp_path / "t" / "p=a").chmod(0)
    try:
        with pytest.raises(StorageError):
            DeltaTable(tmp_path / "t").repair()
    finally:
        (tmp_path / "t" / "p=a").chmod(0o755)


def test_a_lost_vector_leaves_its_file_in_the_table(tmp_path: Path) -> None:
    root = tmp_path / "t"
    build(root, TABLES["tracked"])
    dvs = list(root.rglob("*.bin"))
    assert dvs
    for path in dvs:
        path.unlink()
    result = DeltaTable(root).repair(dry_run=False)
    assert result.committed is None
    assert {file.deletion_vector for file in result.plan.unreadable} == {
        str(path.relative_to(root)) for path in dvs
    }
    (path, place) = next((file.path, files_of(root)[file.path]) for file in result.plan.unreadable)
    place.unlink()
    both = DeltaTable(root).repair()
    assert both.files_removed == (path,)
    assert path not in {file.path for file in both.plan.unreadable}


def test_files_outside_are_looked_for_only_where_that_is_allowed(plain: Path, tmp_path: Path) -> None:
    clone_table(plain, tmp_path / "clone", shallow=True)
    lose(plain)
    alone = DeltaTable(tmp_path / "clone").repair(dry_run=False)
    assert (alone.files_removed, len(alone.plan.unreadable)) == ((), 3)
    assert all("outside" in file.reason for file in alone.plan.unreadable)
    allowed = DeltaTable(tmp_path / "clone", allowed_roots=[plain])
    result = allowed.repair(dry_run=False)
    assert (len(result.files_removed), result.plan.unreadable) == (1, ())
    assert allowed.to_pyarrow_table().num_rows == 4


@pytest.mark.parametrize("left", ["nothing", "an empty directory"])
def test_nothing_is_gone_from_a_root_that_is_not_there(plain: Path, tmp_path: Path, left: str) -> None:
    clone_table(plain, tmp_path / "clone", shallow=True)
    plain.rename(tmp_path / "not mounted")
    if left != "nothing":
        plain.mkdir()
    table = DeltaTable(tmp_path / "clone", allowed_roots=[plain])
    result = table.repair(dry_run=False)
    assert (result.files_removed, len(result.plan.unreadable)) == ((), 3)
    assert "empty or unavailable" in result.plan.unreadable[0].reason


def test_nothing_is_gone_from_a_root_behind_a_link_that_is_not_there(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "p": ["a", "b"]})
    write_deltalake(tmp_path / "t", data, partition_by=["p"])
    disk = tmp_path / "disk"
    (tmp_path / "t" / "p=a").rename(disk)
    (tmp_path / "t" / "p=a").symlink_to(disk)
    table = DeltaTable(tmp_path / "t", allowed_roots=[disk])
    assert table.to_pyarrow_table().num_rows == 2
    assert (table.repair().plan.missing, table.repair().plan.unreadable) == ((), ())
    disk.rename(tmp_path / "not mounted")
    disk.mkdir()
    plan = table.repair().plan
    assert (plan.missing, len(plan.unreadable)) == ((), 1)
    (disk / "another").touch()
    assert len(table.repair().plan.missing) == 1


def test_links_are_followed_as_far_as_they_may_be(plain: Path, tmp_path: Path) -> None:
    (inside, here), (outside, away) = list(files_of(plain).items())[:2]
    here.rename(plain / "kept")
    here.symlink_to(plain / "kept")
    away.rename(tmp_path / "away")
    away.symlink_to(tmp_path / "away")
    plan = DeltaTable(plain).repair().plan
    assert plan.is_empty
    assert [file.path for file in plan.unreadable] == [outside]
    assert "link" in plan.unreadable[0].reason
    assert inside not in {file.path for file in plan.unreadable}


def test_a_file_of_another_spelling_is_not_given_up(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "p": ["a b"]}), partition_by=["p"])
    ((path, place),) = files_of(tmp_path / "t").items()
    place.parent.rename(place.parents[1] / place.parent.name.replace(" ", "%20"))
    plan = DeltaTable(tmp_path / "t").repair().plan
    assert plan.is_empty
    assert [file.path for file in plan.unreadable] == [path]
    assert "another spelling" in plan.unreadable[0].reason


def test_change_data_across_the_repair_names_the_file(tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}), configuration=feed)
    write_deltalake(tmp_path / "t", pa.table({"id": [2]}), mode="append")
    (lost,) = lose(tmp_path / "t")
    table = DeltaTable(tmp_path / "t")
    table.repair(dry_run=False)
    with pytest.raises(MissingDataFileError, match=lost[:20]):
        table.load_cdf(2).read_all()
    write_deltalake(tmp_path / "t", pa.table({"id": [3]}), mode="append")
    table.update_incremental()
    assert table.load_cdf(3).read_all()["id"].to_pylist() == [3]


def test_a_plan_can_be_kept_and_read_back(plain: Path) -> None:
    lose(plain)
    plan = DeltaTable(plain).repair().plan
    assert FsckPlan.from_json(plan.to_json()) == plan
    with pytest.raises(MaintenanceError, match="malformed"):
        FsckPlan.from_json({**plan.to_json(), "missing": [3]})
    with pytest.raises(MaintenanceError, match="not a repair plan"):
        FsckPlan.from_json({"plan": "vacuum"})
    other = plain.parent / "other"
    write_deltalake(other, pa.table({"id": [1]}))
    with pytest.raises(MaintenanceError, match="another table"):
        apply_fsck(Snapshot.load(LocalLogStore(other)), plan)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_stopped_repair_is_whole_and_its_retry_applies_it_once(tmp_path: Path, after: bool) -> None:
    steps, stopped = 0, True
    while stopped:
        steps += 1
        root = tmp_path / f"{steps}"
        write_deltalake(root, pa.table({"id": [1]}))
        write_deltalake(root, pa.table({"id": [2]}), mode="append")
        lost = lose(root)
        stopped = _stops(root, steps, after=after)
        committed = DeltaTable(root).version() == 2
        assert (set(lost) <= set(files_of(root))) is not committed
        result = DeltaTable(root).repair(dry_run=False, commit_properties=KEYED)
        assert (result.committed is not None and result.committed.already_applied) is committed
        assert DeltaTable(root).version() == 2
        assert DeltaTable(root).to_pyarrow_table().num_rows == 1
    assert steps > 3


def _stops(root: Path, step: int, *, after: bool) -> bool:
    store = StoppingStore(str(root))
    snapshot = Snapshot.load(store)
    store.requests.clear()
    store.stop_at, store.after = step, after
    try:
        apply_fsck(snapshot, plan_fsck(snapshot), run=Run(commit=KEYED))
    except Stopped:
        return True
    return False


def test_arguments_are_looked_at_first(plain: Path) -> None:
    with pytest.raises(ConfigurationError):
        DeltaTable(plain).repair(commit_properties={"txn": 1})  # type: ignore[arg-type]


def test_a_stray_file_whose_name_is_no_text_is_no_hindrance(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["ü"]}), partition_by=["p"])
    stray = os.fsencode(tmp_path) + b"/p=\xff"
    os.makedirs(stray)
    with open(stray + b"/x\xfe.parquet", "wb"):
        pass
    assert DeltaTable(tmp_path).repair(dry_run=True).plan.is_empty
