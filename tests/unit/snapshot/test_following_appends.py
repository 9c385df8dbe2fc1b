"""A snapshot that follows commits knows their files when asked, however many were not looked at between."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.actions import SetTransaction
from delta_core.errors import CorruptLogError
from delta_core.log.commit_reader import CommitData
from delta_core.log.log_path import commit_path
from delta_core.replay.state import MAX_WAITING_COMMITS
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, remove


def _follow(builder: LogBuilder, snapshot: Snapshot) -> Snapshot:
    path = commit_path(snapshot.version + 1)
    data = builder.store.read(path)
    return snapshot.advance([CommitData(version=snapshot.version + 1, path=path, data=data)])


def _paths(snapshot: Snapshot) -> set[str]:
    return set(snapshot.files.to_table(columns=["path"]).column("path").to_pylist())


@pytest.mark.parametrize("count", [1, 3, MAX_WAITING_COMMITS + 2])
def test_files_and_transactions_are_those_of_a_fresh_look(tmp_path: Path, count: int) -> None:
    builder = LogBuilder(tmp_path).create(add("a.parquet"))
    snapshot = Snapshot.load(builder.store, clock=builder.clock)
    assert _paths(snapshot) == {"a.parquet"}
    for number in range(count):
        gone = remove("a.parquet") if number == 0 else remove(f"n{number - 1}.parquet")
        builder.commit(gone, add(f"n{number}.parquet"), SetTransaction(app_id="job", version=number))
        snapshot = _follow(builder, snapshot)
        # Asked of each version, and without its files.
        assert snapshot.transactions["job"].version == number

    fresh = Snapshot.load(builder.store, clock=builder.clock)

    assert snapshot.version == fresh.version == count
    assert _paths(snapshot) == _paths(fresh) == {f"n{count - 1}.parquet"}
    assert snapshot.transactions == fresh.transactions
    assert snapshot.tombstones().num_rows == fresh.tombstones().num_rows == count


def test_a_version_passed_by_keeps_its_own_files(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).create(add("a.parquet"))
    first = Snapshot.load(builder.store, clock=builder.clock)
    assert first.files.num_files == 1
    builder.commit(add("b.parquet"))
    second = _follow(builder, first)
    builder.commit(remove("a.parquet"))
    third = _follow(builder, second)

    assert _paths(third) == {"b.parquet"}
    assert _paths(second) == {"a.parquet", "b.parquet"}
    assert _paths(first) == {"a.parquet"}


def test_refresh_tells_of_a_damaged_commit_at_once(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).create(add("a.parquet"))
    snapshot = Snapshot.load(builder.store, clock=builder.clock)
    assert snapshot.files.num_files == 1
    builder.raw(f"{1:020d}.json", b'{"add": {"path": 7}}\n')

    with pytest.raises(CorruptLogError):
        snapshot.refresh()


def test_an_interruption_while_files_are_listed_leaves_all_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = LogBuilder(tmp_path).create(add("a.parquet"))
    builder.commit(add("b.parquet"))
    snapshot = Snapshot.load(builder.store, clock=builder.clock)

    def interrupted(**parts: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("delta_core.snapshot.snapshot.PendingState", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _ = snapshot.files
    monkeypatch.undo()
    assert _paths(snapshot) == {"a.parquet", "b.parquet"}
