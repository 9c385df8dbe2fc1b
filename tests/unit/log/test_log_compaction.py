"""A log compaction file is read instead of its commits, and is never needed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from delta_core.actions import DomainMetadata, SetTransaction
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import DeltaWarning, LogGapError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.faulty_store import FaultyStore
from tests.support.log_builder import NOW_MS, LogBuilder, add, metadata, protocol, remove
from tests.support.soak import SEED, rounds


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t").create().appends(9)


def _load(log: LogBuilder, version: int | None = None) -> tuple[Snapshot, list[str]]:
    """The snapshot, and which commits were read for its files."""
    store = FaultyStore(log.store)
    snapshot = Snapshot.load(store, version=version, clock=log.clock)
    assert snapshot.files.num_files == snapshot.version
    names = [path.rpartition("/")[2] for path in store.read_paths if path.endswith(".json")]
    return snapshot, [name.removesuffix(".json").lstrip("0") or "0" for name in names]


def _name(first: int, last: int) -> str:
    return f"{first}.{last:020d}.compacted"


def test_it_stands_for_its_commits(log: LogBuilder) -> None:
    log.compact(2, 5)
    assert _load(log)[1] == ["0", "1", _name(2, 5), "6", "7", "8", "9"]
    assert _load(log, 5)[1] == ["0", "1", _name(2, 5)]
    assert _load(log, 4)[1] == ["0", "1", "2", "3", "4"]


def test_of_several_the_longest_that_fits(log: LogBuilder) -> None:
    log.compact(1, 3)
    log.compact(1, 6)
    log.compact(4, 9)
    log.compact(7, 9)
    assert _load(log)[1] == ["0", _name(1, 6), _name(7, 9)]
    assert _load(log, 5)[1] == ["0", _name(1, 3), "4", "5"]


def test_only_what_comes_after_the_checkpoint(log: LogBuilder) -> None:
    write_checkpoint(_load(log, 4)[0])
    log.compact(2, 6)
    log.compact(5, 7)
    assert _load(log)[1] == [_name(5, 7), "8", "9"]


def test_one_commit_is_no_range_and_an_empty_file_no_compaction(log: LogBuilder) -> None:
    log.compact(3, 3)
    log.raw(f"{5:020d}.{8:020d}.compacted.json", b"")
    assert _load(log)[1] == [str(number) for number in range(10)]


@pytest.mark.parametrize(
    "data", [b"{", b'{"add":{"path":"x"}}', b'{"protocol":{}}', b"\xff\xfe", b"\n\n\n", b" " * (65 << 20)]
)
def test_a_damaged_one_is_passed_over(log: LogBuilder, data: bytes) -> None:
    log.raw(f"{2:020d}.{8:020d}.compacted.json", data)
    with pytest.warns(DeltaWarning, match="compacted.json.*is ignored"):
        snapshot, _ = _load(log)
    assert sorted(snapshot.files.to_table(["path"])["path"].to_pylist()) == [
        f"file-{number}" for number in range(1, 10)
    ]


def test_the_commits_must_be_there_all_the_same(log: LogBuilder) -> None:
    log.compact(2, 8)
    log.remove_commits([5])
    with pytest.raises(LogGapError, match="version 5 is missing"):
        _load(log)


def test_protocol_metadata_and_refresh(log: LogBuilder) -> None:
    log.commit(metadata(id="new"))  # 10
    log.commit(protocol(min_writer_version=4), SetTransaction(app_id="a", version=7))  # 11
    log.compact(8, 11)
    snapshot = Snapshot.load(log.store, clock=log.clock)
    assert (snapshot.metadata.id, snapshot.protocol.min_writer_version) == ("new", 4)
    assert snapshot.transactions["a"].version == 7
    log.commit(add("late"))
    assert snapshot.refresh().files.num_files == 10


def test_the_time_comes_from_the_commit(log: LogBuilder) -> None:
    log.commit(metadata(configuration={"delta.enableInCommitTimestamps": "true"}))
    log.raw(
        f"{11:020d}.json",
        b'{"commitInfo":{"inCommitTimestamp":%d}}\n{"txn":{"appId":"a","version":1}}' % (NOW_MS + 77),
    )
    log.compact(10, 11)
    snapshot = Snapshot.load(log.store, clock=log.clock)
    assert snapshot.transactions["a"].version == 1
    assert snapshot.timestamp_ms == NOW_MS + 77


@pytest.mark.parametrize("number", range(4))
def test_one_state_from_commits_from_a_checkpoint_and_through_compactions(
    tmp_path: Path, number: int
) -> None:
    for history in range(rounds(usual=5, soak=250)):
        _check_history(tmp_path / str(history), random.Random(f"{SEED}:{number}:{history}"))


def _check_history(root: Path, rng: random.Random) -> None:
    log = LogBuilder(root).create()
    live: set[str] = set()
    for _ in range(rng.randint(3, 25)):
        actions = []
        for path in rng.sample(["a", "b", "c%20d", "e", "f", "g/h"], rng.randint(0, 3)):
            if path in live and rng.random() < 0.6:
                actions.append(remove(path))
                live.discard(path)
            else:
                actions.append(add(path, size_bytes=rng.randint(1, 99)))
                live.add(path)
        if rng.random() < 0.3:
            actions.append(SetTransaction(app_id=rng.choice("xy"), version=rng.randint(0, 9)))
        if rng.random() < 0.2:
            gone = rng.random() < 0.4
            actions.append(DomainMetadata(domain=rng.choice("de"), configuration="{}", removed=gone))
        if rng.random() < 0.1:
            actions.append(metadata(id=str(rng.random())))
        log.commit(*actions)
    last = log.next_version - 1
    version = rng.randint(0, last)
    from_commits = _state(log, version)
    for _ in range(rng.randint(1, 3)):
        first = rng.randint(0, last - 1)
        log.compact(first, rng.randint(first + 1, last))
    assert _state(log, version) == from_commits
    # A checkpoint between, and both together.
    write_checkpoint(Snapshot.load(log.store, version=rng.randint(0, version), clock=log.clock))
    assert _state(log, version) == from_commits
    for path in log.log.glob("*.compacted.json"):
        path.unlink()
    assert _state(log, version) == from_commits
    write_checkpoint(Snapshot.load(log.store, version=version, clock=log.clock))
    assert _state(log, version) == from_commits


def _state(log: LogBuilder, version: int) -> tuple[object, ...]:
    snapshot = Snapshot.load(LocalLogStore(log.root), version=version, clock=log.clock)
    files = snapshot.files.to_table().to_pylist()
    gone = snapshot.tombstones(since_ms=0).select(["path", "deletion_timestamp_ms"]).to_pylist()
    return (
        snapshot.protocol,
        snapshot.metadata,
        dict(snapshot.transactions),
        dict(snapshot.domain_metadata),
        sorted(files, key=lambda row: row["path"]),
        sorted(gone, key=lambda row: row["path"]),
    )
