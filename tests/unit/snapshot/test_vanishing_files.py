"""A log that changes between its listing and its reading, and damage that shows only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import CorruptLogError, DeltaWarning, ObjectNotFoundError
from delta_core.log.commit_reader import CommitData
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import LogBuilder, add, metadata, remove


class CleanedUpStore(LocalLogStore):
    """A local directory where something happens before each read of a commit or checkpoint."""

    before: Callable[[str], None] = staticmethod(lambda path: None)

    def read(self, path: str) -> bytes:
        self.before(path)
        return super().read(path)


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t")


def _paths(snapshot: Snapshot) -> set[str]:
    return set(snapshot.files.to_table(["path"]).column("path").to_pylist())


def test_commits_that_vanish_once_are_replaced_by_the_checkpoint(log: LogBuilder) -> None:
    log.create().appends(3)
    store = CleanedUpStore(log.root, clock=log.clock)

    def clean_up(path: str) -> None:
        store.before = lambda path: None
        write_checkpoint(Snapshot.load(log.store))
        log.remove_commits([0, 1, 2])

    store.before = clean_up
    snapshot = Snapshot.load(store, clock=log.clock)
    assert snapshot.segment.checkpoint_version == 3
    assert _paths(snapshot) == {"file-1", "file-2", "file-3"}


def test_a_commit_that_is_listed_and_never_there_is_named(log: LogBuilder) -> None:
    log.create().appends(1)
    store = CleanedUpStore(log.root, clock=log.clock)
    asked: list[str] = []

    def gone(path: str) -> None:
        if path.endswith("1.json"):
            asked.append(path)
            raise ObjectNotFoundError(f"{path} is gone")

    store.before = gone
    with pytest.raises(ObjectNotFoundError, match=r"00000000000000000001\.json is gone"):
        Snapshot.load(store, clock=log.clock)
    # Listed anew each time, and not for ever.
    assert len(asked) == 3


def test_a_refresh_whose_commits_vanish_opens_the_table_anew(log: LogBuilder) -> None:
    log.create().appends(1)
    store = CleanedUpStore(log.root, clock=log.clock)
    snapshot = Snapshot.load(store, clock=log.clock)
    log.appends(3)

    def clean_up(path: str) -> None:
        store.before = lambda path: None
        write_checkpoint(Snapshot.load(log.store))
        log.remove_commits(range(4))

    store.before = clean_up
    newer = snapshot.refresh()
    assert newer.version == 4
    assert _paths(newer) == {f"file-{n}" for n in range(1, 5)}


def test_commits_that_the_caller_has_are_not_read_again(log: LogBuilder) -> None:
    log.create().appends(1)
    snapshot = Snapshot.load(log.store, clock=log.clock)
    assert snapshot.advance([]) is snapshot
    log.commit(remove("file-1"), add("b"))
    path = f"_delta_log/{2:020d}.json"
    advanced = snapshot.advance([CommitData(version=2, path=path, data=log.store.read(path))])
    assert (advanced.version, _paths(advanced)) == (2, {"b"})
    assert advanced.timestamp_ms == Snapshot.load(log.store).timestamp_ms
    assert advanced.files.total_bytes == Snapshot.load(log.store).files.total_bytes


def test_a_compaction_with_damaged_metadata_is_passed_over(log: LogBuilder) -> None:
    log.create().appends(3)
    compaction = log.compact(1, 3)
    compaction.write_bytes(compaction.read_bytes() + b'\n{"metaData":{"id":7}}')
    with pytest.warns(DeltaWarning, match="is ignored"):
        snapshot = Snapshot.load(log.store, clock=log.clock)
    assert _paths(snapshot) == {"file-1", "file-2", "file-3"}
    assert not snapshot.segment.compactions


def test_a_checksum_that_says_otherwise_is_told(log: LogBuilder) -> None:
    log.create().appends(2)
    log.checksum(Snapshot.load(log.store), numFiles=7)
    snapshot = Snapshot.load(log.store, clock=log.clock)
    with pytest.warns(DeltaWarning, match="Version 2 of .* contradicts its checksum: .*7"):
        assert snapshot.files.num_files == 2


def _damaged_checkpoint(log: LogBuilder, version: int, **fields: object) -> None:
    """The checkpoint of a version with negative sizes and other metadata."""
    write_checkpoint(Snapshot.load(log.store, version=version))
    path = log.log / f"{version:020d}.checkpoint.parquet"
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if row["add"]:
            row["add"]["size"] = -1
        if row["metaData"]:
            row["metaData"] |= fields
    pq.write_table(pa.Table.from_pylist(rows, CHECKPOINT_SCHEMA), path)


def test_damage_in_a_checkpoint_is_passed_over_when_the_table_is_the_same(log: LogBuilder) -> None:
    log.create().appends(2)
    _damaged_checkpoint(log, 2)
    with pytest.warns(DeltaWarning, match="negative size"):
        assert _paths(Snapshot.load(log.store)) == {"file-1", "file-2"}


def test_files_are_not_read_by_the_rules_of_a_damaged_checkpoint(log: LogBuilder) -> None:
    """The metadata came out of the checkpoint and has been told; the commits say another."""
    log.create().appends(2)
    _damaged_checkpoint(log, 2, name="another")
    snapshot = Snapshot.load(log.store)
    assert snapshot.metadata.name == "another"
    with pytest.raises(CorruptLogError, match="negative size"), pytest.warns(DeltaWarning):
        _ = snapshot.files
    log.commit(metadata(name="now"))
    # Where a later commit says it, the checkpoint's does not count.
    with pytest.warns(DeltaWarning, match="negative size"):
        assert _paths(Snapshot.load(log.store)) == {"file-1", "file-2"}
