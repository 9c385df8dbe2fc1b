"""What opening a table costs a remote store, request by request, and what a cache spares."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.dml.write import write_deltalake
from delta_core.errors import CorruptLogError, DeltaWarning
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.cached import CachedLogStore
from delta_core.storage.disk_cache import DiskCache
from delta_core.storage.local import LocalLogStore
from tests.support.counting_store import CountingStore, Latency
from tests.support.log_builder import LogBuilder, add, metadata

COMMITS = 7


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Versions 0 to 12, a checkpoint of 5, so seven commits after it."""
    log = LogBuilder(tmp_path / "t").create().appends(5)
    write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    return log.appends(COMMITS)


@pytest.fixture
def store(log: LogBuilder) -> CountingStore:
    return CountingStore(log.root, clock=log.clock, latency=Latency(first_byte=0.01, list_page=0.05))


def _with_checksum(log: LogBuilder, **changes: object) -> None:
    log.checksum(Snapshot.load(LocalLogStore(log.root), clock=log.clock), **changes)


def _together(count: int) -> Callable[[str], None]:
    """Passes only when so many GETs of log files are under way at once."""
    barrier = threading.Barrier(count)

    def wait(path: str) -> None:
        if not path.endswith(("_last_checkpoint", ".crc")):
            barrier.wait(timeout=300)

    return wait


def _open(store: CountingStore | CachedLogStore, log: LogBuilder) -> Snapshot:
    snapshot = Snapshot.load(store, clock=log.clock)
    table = snapshot.files.to_table()
    assert table.num_rows == snapshot.version
    return snapshot


@pytest.mark.parametrize("checksum", [False, True])
def test_open_asks_for_each_file_once_and_side_by_side(
    log: LogBuilder, store: CountingStore, checksum: bool
) -> None:
    if checksum:
        _with_checksum(log)
    store.before_get = _together(COMMITS + 1)
    snapshot = _open(store, log)
    expected = {"hint": 1, "checkpoint": 1, "json": COMMITS} | ({"crc": 1} if checksum else {})
    assert store.requests.kinds() == expected
    assert (store.requests.list_pages, store.requests.heads) == (1, [])
    assert store.requests.most_at_once == COMMITS + 1
    # Whatever is asked next is there already.
    store.reset()
    assert len(snapshot.tombstones(since_ms=0)) == 0
    assert Scan(snapshot, predicate="id > 3").files(["path"]).num_rows == 12
    assert (snapshot.transactions, snapshot.domain_metadata) == ({}, {})
    assert store.requests.total == 0


def test_a_long_log_is_listed_by_the_page(log: LogBuilder, store: CountingStore) -> None:
    (log.log / "_last_checkpoint").unlink()
    for number in range(2000):
        log.raw(f"notes-{number}", b"")
    _open(store, log)
    assert store.requests.list_pages == 3
    assert len(store.requests.gets) == 1 + 1 + COMMITS  # the hint that is missing, the part, the commits


def test_whether_there_is_a_table_takes_the_end_of_its_log(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "t").create().appends(2500)
    store = CountingStore(log.root, clock=log.clock)
    assert Snapshot.exists(store)
    assert (store.requests.list_pages, store.requests.kinds()) == (3, {"hint": 1})
    write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    store.reset()
    assert Snapshot.exists(store)
    assert (store.requests.list_pages, store.requests.kinds()) == (1, {"hint": 1})
    # The hint is only a hint.
    for path in log.log.iterdir():
        if path.name[:20] == f"{2500:020d}":
            path.unlink()
    assert Snapshot.exists(store)


def test_an_append_to_a_uri_lists_the_end_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder(tmp_path / "t").create().appends(1500)
    write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    store = CountingStore(log.root)
    monkeypatch.setattr("delta_core.dml.write.open_store", lambda *args, **options: store)
    rows = pa.table({"id": pa.array([1], pa.int32()), "p": ["1"]})
    done = write_deltalake(str(log.root), rows, mode="append")
    assert done is not None
    assert done.version == 1501
    assert store.requests.list_pages == 1


@pytest.mark.parametrize("parts", [2, 5])
def test_parts_are_fetched_side_by_side(log: LogBuilder, store: CountingStore, parts: int) -> None:
    _split_checkpoint(log, parts)
    store.before_get = _together(COMMITS + parts)
    _open(store, log)
    assert store.requests.kinds() == {"hint": 1, "checkpoint": parts, "json": COMMITS}


def test_a_compaction_spares_requests(log: LogBuilder, store: CountingStore) -> None:
    log.compact(6, 11)
    _open(store, log)
    assert store.requests.kinds() == {"hint": 1, "checkpoint": 1, "json": 2}


def test_protocol_and_metadata_alone(log: LogBuilder, store: CountingStore) -> None:
    _with_checksum(log)
    snapshot = Snapshot.load(store, clock=log.clock)
    assert snapshot.schema.names == ("p", "id")
    assert (snapshot.protocol.min_writer_version, snapshot.version) == (2, 12)
    assert store.requests.kinds() == {"hint": 1, "crc": 1}
    assert store.requests.total == 3


def test_refresh_asks_for_what_is_new(log: LogBuilder, store: CountingStore) -> None:
    _with_checksum(log)
    closed, snapshot = Snapshot.load(store, clock=log.clock), _open(store, log)
    store.reset()
    assert snapshot.refresh() is snapshot
    assert closed.refresh() is closed
    assert store.requests.total == 2
    log.commit(add("new"))
    store.reset()
    assert snapshot.refresh().files.num_files == 13
    assert (store.requests.kinds(), store.requests.total) == ({"json": 1}, 2)
    # One whose log was never opened begins anew.
    assert closed.refresh().files.num_files == 13
    assert closed.files.num_files == 12


def test_a_checksum_that_contradicts_the_log_is_no_basis(log: LogBuilder, store: CountingStore) -> None:
    log.commit(metadata(id="the log's"))
    _with_checksum(log, metadata={"id": "the checksum's", "partitionColumns": ["p"]})
    snapshot = Snapshot.load(store, clock=log.clock)
    with pytest.raises(CorruptLogError, match="contradicts the log") as caught:
        _ = snapshot.files
    assert "00013.crc" in caught.value.problem
    assert "the log's" in caught.value.cause


def test_a_damaged_checksum_costs_a_warning(log: LogBuilder, store: CountingStore) -> None:
    log.raw(f"{12:020d}.crc", b"{")
    with pytest.warns(DeltaWarning, match="The checksum is ignored"):
        assert Snapshot.load(store, clock=log.clock).files.num_files == 12


@pytest.mark.parametrize("checksum", [False, True])
def test_a_warm_cache_leaves_the_hint_and_the_listing(
    log: LogBuilder, store: CountingStore, tmp_path: Path, checksum: bool
) -> None:
    if checksum:
        _with_checksum(log)
    cache = DiskCache(tmp_path / "cache")
    _open(CachedLogStore(store, cache), log)
    objects = COMMITS + 1 + checksum
    assert (cache.statistics.hits, cache.statistics.misses) == (0, objects)
    store.reset()
    again = DiskCache(tmp_path / "cache")  # as in another process
    _open(CachedLogStore(store, again), log)
    assert (store.requests.kinds(), store.requests.total) == ({"hint": 1}, 2)
    assert (again.statistics.hits, again.statistics.misses) == (objects, 0)


def test_a_table_made_anew_is_not_served_from_the_cache(
    log: LogBuilder, store: CountingStore, tmp_path: Path
) -> None:
    cached = CachedLogStore(store, DiskCache(tmp_path / "cache"))
    _open(cached, log)
    for path in log.log.iterdir():
        path.unlink()
    other = LogBuilder(log.root)
    other.create(add("another")).appends(1)
    assert sorted(Snapshot.load(cached, clock=log.clock).files.to_table(["path"])["path"].to_pylist()) == [
        "another",
        "file-1",
    ]


def test_who_won_a_version_is_never_answered_from_the_cache(
    log: LogBuilder, store: CountingStore, tmp_path: Path
) -> None:
    cached = CachedLogStore(store, DiskCache(tmp_path / "cache"))
    _open(cached, log)
    path = f"_delta_log/{12:020d}.json"
    (log.root / path).write_bytes(b"another")
    assert cached.read(path) == b"another"


def _split_checkpoint(log: LogBuilder, parts: int) -> None:
    """The checkpoint's rows, dealt to some parts."""
    import pyarrow.parquet as pq

    whole = log.log / f"{5:020d}.checkpoint.parquet"
    rows = pq.read_table(whole)
    for part in range(parts):
        name = f"{5:020d}.checkpoint.{part + 1:010d}.{parts:010d}.parquet"
        pq.write_table(rows.take(list(range(part, rows.num_rows, parts))), log.log / name)
    whole.unlink()
