"""Other writers' checkpoints of the same version, tables dropped meanwhile, and what may be deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from delta_core.checkpoint import classic, create_if_absent
from delta_core.checkpoint import rows as rows_module
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import CorruptLogError, DeltaWarning, StaleCommitError, VerificationError
from delta_core.log.last_checkpoint import read_last_checkpoint
from delta_core.log.log_path import LAST_CHECKPOINT_PATH, checkpoint_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import TEMPORARY_PREFIX, LocalLogStore
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.log_builder import NOW_MS, LogBuilder, add, metadata, protocol, remove

HOUR_SECONDS = 3_600


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Version 4 of three files, one of them removed; the tombstone expires within the hour."""
    log = LogBuilder(tmp_path / "t").create().appends(3)
    removed_ms = log.clock.now_ms() + HOUR_SECONDS * 1000
    log.clock.advance(7 * 24 * HOUR_SECONDS)
    log.commit(remove("file-1", deletion_timestamp_ms=removed_ms))
    return log


@pytest.fixture(params=[1 << 20, 0], ids=["created", "streamed"], autouse=True)
def _both_ways_to_write(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(create_if_absent, "IN_MEMORY_BYTES", request.param)


class MeetingStore(LocalLogStore):
    """Lets others act right before a checkpoint appears, and right after."""

    before: Callable[[], object] = staticmethod(lambda: None)
    after: Callable[[], object] = staticmethod(lambda: None)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.before()
        super().put_if_absent(path, data)
        self.after()

    def _rename(self, temporary: Path, target: Path, path: str) -> None:
        meets = path.endswith(".checkpoint.parquet")
        if meets:
            self.before()
        super()._rename(temporary, target, path)
        if meets:
            self.after()


class PersistingStore(FaultyStore):
    """Notes what is made durable."""

    def __init__(self, inner: LocalLogStore) -> None:
        super().__init__(inner)
        self.persisted: list[str] = []

    def persist(self, paths: Sequence[str]) -> None:
        self.persisted += paths


def _load(log: LogBuilder, store: LocalLogStore | None = None) -> Snapshot:
    snapshot = Snapshot.load(store or log.store, clock=log.clock)
    assert snapshot.files.num_files >= 0
    return snapshot


def _path(log: LogBuilder) -> Path:
    return log.root / checkpoint_path(4)


def _drop(log: LogBuilder) -> None:
    for path in log.log.iterdir():
        if not path.name.startswith(TEMPORARY_PREFIX):
            path.unlink()


def _make_anew(log: LogBuilder, versions: int) -> LogBuilder:
    _drop(log)
    other = LogBuilder(log.root)
    other.commit(protocol(), metadata(id="new"), time_ms=NOW_MS + 5_000_000)
    for _ in range(versions):
        other.commit(add(f"new-{other.next_version}"), time_ms=NOW_MS + 5_000_000)
    return other


def test_a_checkpoint_that_is_there_stays(log: LogBuilder) -> None:
    """It is sound, though a tombstone that it holds has expired; and it is all that is left."""
    first = write_checkpoint(_load(log))
    before = _path(log).stat()
    (log.root / LAST_CHECKPOINT_PATH).unlink()
    log.clock.advance(2 * HOUR_SECONDS)
    log.remove_commits(range(4))
    assert write_checkpoint(_load(log)) == first
    after = _path(log).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    hint = read_last_checkpoint(log.store)
    assert hint is not None
    assert (hint.version, hint.size) == (4, first.size)


def test_a_lost_answer_is_no_failure(log: LogBuilder) -> None:
    store = PersistingStore(log.store)
    snapshot = Snapshot.load(store, clock=log.clock)
    store.puts = [PutFault.DROP_RESPONSE]
    info = write_checkpoint(snapshot)
    assert info.size_bytes == _path(log).stat().st_size
    # What was not heard of may not be on the disk.
    assert store.persisted == ([checkpoint_path(4)] if store.put_paths else [])
    assert read_last_checkpoint(log.store) is not None


def test_two_writers_at_once_both_end_well(log: LogBuilder) -> None:
    store = MeetingStore(log.root)
    slow = _load(log, store)

    def write_another() -> None:
        log.clock.advance(2 * HOUR_SECONDS)
        assert write_checkpoint(_load(log)).size == 4
        log.remove_commits(range(4))

    store.before = write_another
    assert write_checkpoint(slow).size == pq.read_metadata(_path(log)).num_rows
    assert _load(log).files.num_files == 2


def test_a_writer_that_replaces_checkpoints_keeps_its_own(log: LogBuilder) -> None:
    store = MeetingStore(log.root)

    def replace() -> None:
        table = pq.read_table(_path(log))
        assert table.num_rows == 5
        _path(log).unlink()
        pq.write_table(table.slice(0, 4), _path(log))  # without the tombstone
        log.remove_commits(range(4))

    store.after = replace
    assert write_checkpoint(_load(log, store)).size == 4
    assert _load(log).files.num_files == 2


def test_what_another_writer_has_put_there_is_never_deleted(log: LogBuilder) -> None:
    store = MeetingStore(log.root)

    def replace() -> None:
        table = pq.read_table(_path(log))
        _path(log).unlink()
        pq.write_table(table.slice(0, 3), _path(log))

    store.after = replace
    with pytest.raises(VerificationError, match="It was not deleted"):
        write_checkpoint(_load(log, store))
    assert pq.read_metadata(_path(log)).num_rows == 3
    assert read_last_checkpoint(log.store) is None


def test_one_that_is_replaced_while_it_is_judged_is_not_deleted(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = classic.latest_version_without

    def replaced_meanwhile(store: LocalLogStore, path: str) -> int | None:
        os.utime(_path(log), ns=(0, NOW_MS * 10**6))
        return real(store, path)

    monkeypatch.setattr(classic, "latest_version_without", replaced_meanwhile)
    rows = rows_module.add_rows
    monkeypatch.setattr(rows_module, "add_rows", lambda batch, schema: rows(batch.slice(1), schema))
    with pytest.raises(VerificationError, match="It was not deleted"):
        write_checkpoint(_load(log))
    assert _path(log).exists()


@pytest.mark.parametrize(("cleaned_up", "left"), [(0, False), (4, True)])
def test_a_wrong_one_goes_only_where_the_log_is_read_without_it(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch, cleaned_up: int, left: bool
) -> None:
    store = MeetingStore(log.root)
    store.after = lambda: log.remove_commits(range(cleaned_up))
    snapshot = _load(log, store)
    rows = rows_module.add_rows
    monkeypatch.setattr(rows_module, "add_rows", lambda batch, schema: rows(batch.slice(1), schema))
    with pytest.raises(VerificationError, match="was not deleted" if left else "checkpoint was deleted"):
        write_checkpoint(snapshot)
    assert _path(log).exists() == left
    assert read_last_checkpoint(log.store) is None


@pytest.mark.parametrize("versions", [0, 1, 4, 6])
def test_a_table_dropped_and_made_anew_meanwhile_gets_no_checkpoint(log: LogBuilder, versions: int) -> None:
    store = MeetingStore(log.root)
    old = _load(log, store)
    store.before = lambda: _make_anew(log, versions)
    with pytest.raises(StaleCommitError):
        write_checkpoint(old)
    assert not _path(log).exists()
    assert read_last_checkpoint(log.store) is None
    new = _load(log)
    assert (new.version, new.metadata.id, new.files.num_files) == (versions, "new", versions)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_table_dropped_meanwhile_leaves_nothing(log: LogBuilder, when: str) -> None:
    store = MeetingStore(log.root)
    setattr(store, when, lambda: _drop(log))
    with pytest.raises(StaleCommitError):
        write_checkpoint(_load(log, store))
    assert list(log.log.iterdir()) == []


def test_the_checkpoint_of_a_table_made_anew_stays(log: LogBuilder) -> None:
    store = MeetingStore(log.root)
    old = _load(log, store)
    other = _make_anew(log, 4)
    write_checkpoint(_load(other))
    before = _path(log).read_bytes()
    with pytest.raises(StaleCommitError):
        write_checkpoint(old)
    # Had the table been made anew a moment later:
    asked: list[object] = []
    real = classic.replaced_log_error

    def looks_twice(snapshot: Snapshot) -> StaleCommitError | None:
        asked.append(snapshot)
        return None if len(asked) == 1 else real(snapshot)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classic, "replaced_log_error", looks_twice)
        with pytest.raises(StaleCommitError):
            write_checkpoint(old)
    assert len(asked) == 2
    assert _path(log).read_bytes() == before


def test_one_that_cannot_be_read_is_replaced(log: LogBuilder) -> None:
    write_checkpoint(_load(log))
    _path(log).write_bytes(_path(log).read_bytes()[:-20])
    with pytest.warns(DeltaWarning, match="is ignored"):
        snapshot = _load(log)
    info = write_checkpoint(snapshot)
    assert info.size_bytes == _path(log).stat().st_size
    log.remove_commits(range(4))
    assert _load(log).files.num_files == 2


def test_one_that_cannot_be_read_stays_where_nothing_tells_whose_log_it_is(log: LogBuilder) -> None:
    write_checkpoint(_load(log))
    log.remove_commits(range(5))
    snapshot = _load(log)
    damaged = _path(log).read_bytes()[:-20]
    _path(log).unlink()
    _path(log).write_bytes(damaged)
    with pytest.raises(CorruptLogError):
        write_checkpoint(snapshot)
    assert _path(log).read_bytes() == damaged


def test_one_of_another_state_is_neither_replaced_nor_taken(log: LogBuilder) -> None:
    snapshot = _load(log)
    write_checkpoint(snapshot)
    table = pq.read_table(_path(log))
    pq.write_table(table.slice(0, 3), _path(log))
    before = _path(log).read_bytes()
    (log.root / LAST_CHECKPOINT_PATH).unlink()
    with pytest.raises(VerificationError, match=r"existing checkpoint.*The version has 2 files"):
        write_checkpoint(snapshot)
    assert _path(log).read_bytes() == before
    assert read_last_checkpoint(log.store) is None
