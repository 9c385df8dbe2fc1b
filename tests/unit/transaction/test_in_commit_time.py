"""Commits that carry their time: in order whatever the clocks say, and since when, in the table itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from delta_core.actions import AddFile, CommitInfo, Metadata, Protocol
from delta_core.actions.json_codec import encode_commit
from delta_core.clock import ManualClock
from delta_core.errors import CommitError, StorageError
from delta_core.log.log_path import commit_path
from delta_core.snapshot.commit_time import version_at_timestamp
from delta_core.snapshot.history import commit_actions, history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_result import Committed, Rejected, raise_for_result
from delta_core.transaction.in_commit_time import ENABLEMENT_PROPERTIES
from delta_core.transaction.transaction import Transaction
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.writable_features import let_write

START_MS = 1_700_000_000_000
ENABLE = "delta.enableInCommitTimestamps"
ON = {ENABLE: "true"}
SINCE_VERSION, SINCE_TIME = ENABLEMENT_PROPERTIES
METADATA = Metadata(
    id="table",
    schema_string='{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}',
)
PLAIN = Protocol(min_reader_version=1, min_writer_version=7, writer_features=frozenset())
PROTOCOL = replace(PLAIN, writer_features=frozenset({"inCommitTimestamp"}))


@pytest.fixture(autouse=True)
def _writable(monkeypatch: pytest.MonkeyPatch) -> None:
    let_write(monkeypatch, "inCommitTimestamp")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> FaultyStore:
    return FaultyStore(LocalLogStore(tmp_path, clock=clock))


def add(path: str) -> AddFile:
    return AddFile(path=path, size_bytes=1, modification_time_ms=START_MS, stats='{"numRecords":1}')


def on(configuration: Mapping[str, str] = ON) -> Metadata:
    return replace(METADATA, configuration=dict(configuration))


def create(
    store: FaultyStore, clock: ManualClock, metadata: Metadata, protocol: Protocol = PROTOCOL
) -> Snapshot:
    done = Transaction.create(store, clock=clock).add(protocol, metadata, add("f0")).commit()
    raise_for_result(done)
    return Snapshot.load(store, clock=clock)


def begin(store: FaultyStore, clock: ManualClock, snapshot: Snapshot | None = None) -> Transaction:
    base = snapshot or Snapshot.load(store, clock=clock)
    return Transaction.begin(base, operation="WRITE", clock=clock, random=Random(1))


def times(store: FaultyStore) -> list[int | None]:
    found = []
    for version in range(Snapshot.load(store).version + 1):
        first = json.loads(store.read(commit_path(version)).splitlines()[0])
        found.append(first["commitInfo"].get("inCommitTimestamp"))
    return found


def set_file_time(store: FaultyStore, tmp_path: Path, version: int, time_ms: int) -> None:
    os.utime(tmp_path / commit_path(version), ns=(time_ms * 10**6, time_ms * 10**6))


def test_a_table_with_the_feature_and_without_the_property_carries_none(
    store: FaultyStore, clock: ManualClock
) -> None:
    create(store, clock, METADATA)
    begin(store, clock).add(add("f1")).commit()
    create_at = Snapshot.load(store).metadata
    assert times(store) == [None, None]
    assert not set(ENABLEMENT_PROPERTIES) & set(create_at.configuration)


def test_version_0_says_nothing_of_a_time_before(store: FaultyStore, clock: ManualClock) -> None:
    stale = {**ON, SINCE_VERSION: "7", SINCE_TIME: "8"}
    snapshot = create(store, clock, on(stale))
    assert dict(snapshot.metadata.configuration) == ON
    assert times(store) == [START_MS]
    assert snapshot.timestamp_ms == START_MS


def test_times_go_up_when_clocks_go_back_or_stand(store: FaultyStore, clock: ManualClock) -> None:
    create(store, clock, on())
    snapshot = None
    for number, step in enumerate((0, 5, -3600, 0, 3600 * 2), start=1):
        clock.advance(step)
        done = begin(store, clock, snapshot).add(add(f"f{number}")).commit()
        assert isinstance(done, Committed)
        snapshot = done.snapshot
        assert snapshot is not None
        assert snapshot.timestamp_ms == times(store)[-1]
    later = START_MS + 5000
    assert times(store) == [START_MS, START_MS + 1, later, later + 1, later + 2, clock.now_ms()]
    assert [entry.timestamp_ms for entry in history(store)] == times(store)[::-1]


def test_whoever_comes_second_counts_on_from_the_winners(store: FaultyStore, clock: ManualClock) -> None:
    base = create(store, clock, on())
    mine = begin(store, clock, base).add(add("mine"))
    ahead = ManualClock(START_MS + 900_000)
    for number in range(3):
        raise_for_result(begin(store, ahead).add(add(f"theirs{number}")).commit())
    raise_for_result(mine.commit())
    assert times(store) == [START_MS, *(START_MS + 900_000 + n for n in range(4))]


@pytest.mark.parametrize("fault", [PutFault.DROP_REQUEST, PutFault.DROP_RESPONSE, PutFault.CONFLICT_409])
def test_every_try_of_one_version_has_the_same_bytes(
    store: FaultyStore, clock: ManualClock, fault: PutFault
) -> None:
    create(store, clock, on())
    store.put_bodies.clear()
    store.puts = [fault, PutFault.DROP_REQUEST]
    raise_for_result(begin(store, clock).add(add("f1")).commit())
    assert len(store.put_bodies) >= 1
    assert len(set(store.put_bodies)) == 1


def test_a_commit_that_changes_nothing_carries_its_time(store: FaultyStore, clock: ManualClock) -> None:
    """As a vacuum's and a lease's do."""
    create(store, clock, on())
    clock.advance(1)
    raise_for_result(begin(store, clock).commit())
    assert times(store) == [START_MS, START_MS + 1000]


@pytest.mark.parametrize("protocol_later", [False, True])
def test_enabling_says_since_when(
    store: FaultyStore, clock: ManualClock, tmp_path: Path, protocol_later: bool
) -> None:
    """In metadata of the same commit, even where the commit changes nothing but the protocol."""
    if protocol_later:
        create(store, clock, on(), protocol=PLAIN)
        raise_for_result(begin(store, clock).add(add("f1")).commit())
        enabling = (PROTOCOL,)
    else:
        create(store, clock, METADATA)
        raise_for_result(begin(store, clock).add(add("f1")).commit())
        enabling = (on(),)
    assert times(store) == [None, None]
    set_file_time(store, tmp_path, 0, START_MS)
    set_file_time(store, tmp_path, 1, START_MS + 60_000)
    done = raise_for_result(begin(store, clock).add(*enabling).commit())
    since = START_MS + 60_001
    assert times(store)[2] == since
    snapshot = Snapshot.load(store)
    assert snapshot.metadata.configuration == {**ON, SINCE_VERSION: "2", SINCE_TIME: str(since)}
    assert snapshot.timestamp_ms == since
    assert done.snapshot is not None
    assert done.snapshot.metadata == snapshot.metadata
    assert version_at_timestamp(store, since) == 2
    assert version_at_timestamp(store, since - 1) == 1


def test_enabling_after_winners_exceeds_the_last_ones_file(
    store: FaultyStore, clock: ManualClock, tmp_path: Path
) -> None:
    create(store, clock, METADATA)
    set_file_time(store, tmp_path, 0, START_MS)
    mine = begin(store, clock).add(on())
    for number in (1, 2):
        raise_for_result(begin(store, clock).add(add(f"theirs{number}")).commit())
        set_file_time(store, tmp_path, number, START_MS + number * 60_000)
    raise_for_result(mine.commit())
    since = START_MS + 120_001
    assert times(store) == [None, None, None, since]
    configuration = Snapshot.load(store).metadata.configuration
    assert (configuration[SINCE_VERSION], configuration[SINCE_TIME]) == ("3", str(since))


def test_enabling_whose_predecessor_cannot_be_looked_up_is_rejected(
    store: FaultyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = create(store, clock, METADATA)
    mine = begin(store, clock, base).add(on()).prepare()
    raise_for_result(begin(store, clock).add(add("theirs")).commit())

    def head(path: str) -> Any:
        raise StorageError("busy")

    monkeypatch.setattr(store, "head", head)
    result = mine.commit()
    assert isinstance(result, Rejected)
    assert not result.files_referenced
    assert times(store) == [None, None]


def test_turning_it_off_and_on_again(store: FaultyStore, clock: ManualClock, tmp_path: Path) -> None:
    """The second time counts; what the first left in commits does not."""
    create(store, clock, METADATA)
    set_file_time(store, tmp_path, 0, START_MS)
    for number, metadata in enumerate((on(), on({}), on(), replace(on(), description="d")), start=1):
        clock.advance(60)
        # Properties as a caller has them who knows nothing of the provenance.
        raise_for_result(begin(store, clock).add(metadata).commit())
        clock.advance(60)
        raise_for_result(begin(store, clock).add(add(f"f{number}")).commit())
        stated = Snapshot.load(store).metadata.configuration
        assert stated.get(SINCE_VERSION) == {1: "1", 2: None, 3: "5", 4: "5"}[number]
    carried = times(store)
    assert [time is not None for time in carried] == [False, True, True, False, False, True, True, True, True]
    snapshot = Snapshot.load(store)
    assert snapshot.metadata.configuration[SINCE_TIME] == str(carried[5])
    shown = {entry.version: entry.timestamp_ms for entry in history(snapshot)}
    assert shown == {entry.version: entry.timestamp_ms for entry in history(store)}
    files = {entry.version: entry.info.modified_ms for entry in snapshot.segment.commits}
    assert all(shown[version] == carried[version] for version in range(5, 9))
    assert all(shown[version] >= files[version] for version in range(5))
    assert shown[2] != carried[2]


def test_old_metadata_brings_no_old_answer_back(store: FaultyStore, clock: ManualClock) -> None:
    """As a restore to a version from before the feature was turned off and on again would."""
    create(store, clock, METADATA)
    raise_for_result(begin(store, clock).add(on()).commit())
    first = Snapshot.load(store).metadata
    assert first.configuration[SINCE_VERSION] == "1"
    raise_for_result(begin(store, clock).add(on({})).commit())
    raise_for_result(begin(store, clock).add(first).commit())
    again = Snapshot.load(store).metadata
    assert again.configuration[SINCE_VERSION] == "3"
    raise_for_result(begin(store, clock).add(first).commit())
    assert Snapshot.load(store).metadata == again


def test_a_foreign_commit_without_its_time_does_not_stop_the_next(
    store: FaultyStore, clock: ManualClock
) -> None:
    base = create(store, clock, on())
    mine = begin(store, clock, base).add(add("mine"))
    theirs = [CommitInfo(operation="WRITE", is_blind_append=True), add("theirs")]
    store.inner.put_if_absent(commit_path(1), encode_commit(theirs))
    raise_for_result(mine.commit())
    first, foreign, last = times(store)
    assert (first, foreign) == (START_MS, None)
    assert last is not None
    assert last > START_MS


def test_no_time_is_left(store: FaultyStore, clock: ManualClock) -> None:
    info = CommitInfo(in_commit_timestamp_ms=2**63 - 1)
    store.inner.put_if_absent(commit_path(0), encode_commit([info, PROTOCOL, on()]))
    with pytest.raises(CommitError, match="cannot take another commit"):
        begin(store, clock).add(add("f1")).prepare()


def test_a_plain_table_is_asked_nothing(store: FaultyStore, clock: ManualClock) -> None:
    snapshot = create(store, clock, METADATA, protocol=Protocol(min_reader_version=1, min_writer_version=2))
    store.read_paths.clear()
    begin(store, clock, snapshot).add(add("f1")).prepare()
    assert store.read_paths == []
    infos = [a for a in commit_actions(store, 0) if isinstance(a, CommitInfo)]
    assert [info.in_commit_timestamp_ms for info in infos] == [None]
