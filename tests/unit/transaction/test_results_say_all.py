"""Every field of a commit's result, and every text of its provenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from delta_core.actions import SetTransaction
from delta_core.errors import StorageError
from delta_core.log.log_path import commit_path
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import (
    AlreadyApplied,
    Committed,
    Conflict,
    Rejected,
    Unknown,
    may_discard_files,
)
from delta_core.transaction.committer import READ_BACK_TRIES
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.staged_commit import encode_metrics, encode_parameters
from delta_core.transaction.transaction import Transaction
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.log_builder import LogBuilder, add, metadata, protocol

KEY = CommitProperties(txn=SetTransaction(app_id="job", version=3))


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path).create()


@pytest.fixture
def store(log: LogBuilder) -> FaultyStore:
    return FaultyStore(LocalLogStore(log.root, clock=log.clock))


def begun(log: LogBuilder, store: FaultyStore, path: str, **options: Any) -> Transaction:
    snapshot = Snapshot.load(store, clock=log.clock)
    return Transaction.begin(snapshot, operation="WRITE", clock=log.clock, **options).add(add(path))


def test_a_key_that_is_in_the_table(log: LogBuilder, store: FaultyStore) -> None:
    first = begun(log, store, "a", properties=KEY).set_metrics({"numFiles": 1}).commit()
    assert isinstance(first, Committed)
    assert (first.version, first.attempts, first.recovered, first.already_applied) == (1, 1, False, False)
    again = begun(log, store, "b", properties=KEY)
    result = again.commit()
    assert isinstance(result, AlreadyApplied)
    assert (result.version, result.attempts, result.recovered) == (1, 0, False)
    assert (result.txn_id, result.operation_metrics) == (again.txn_id, {})
    assert (result.transaction.app_id, result.transaction.version) == ("job", 3)
    assert result.snapshot is again.snapshot
    assert not may_discard_files(result)


def test_a_key_that_a_winner_has(log: LogBuilder, store: FaultyStore) -> None:
    slow = begun(log, store, "slow", properties=KEY).set_metrics({"numFiles": 1})
    begun(log, store, "twin", properties=KEY).commit()
    result = slow.commit()
    assert isinstance(result, AlreadyApplied)
    assert (result.version, result.txn_id) == (1, slow.txn_id)
    assert (result.transaction.app_id, result.transaction.version) == ("job", 3)
    assert result.snapshot is not None
    assert result.snapshot.files.num_files == 1


def test_an_outcome_that_nobody_knows(log: LogBuilder, store: FaultyStore) -> None:
    transaction = begun(log, store, "a")
    store.puts = [PutFault.DROP_REQUEST, PutFault.DROP_REQUEST, PutFault.DENIED]
    result = transaction.commit()
    assert isinstance(result, Unknown)
    assert (result.version, result.txn_id, result.attempts) == (1, transaction.txn_id, 3)
    another = begun(log, store, "b")
    store.puts, store.failing_reads = [PutFault.DROP_RESPONSE], READ_BACK_TRIES
    result = another.commit()
    assert isinstance(result, Unknown)
    assert result.attempts == 1


def test_a_refusal_and_a_conflict(log: LogBuilder, store: FaultyStore) -> None:
    store.puts = [PutFault.DENIED]
    refused = begun(log, store, "a").commit()
    assert isinstance(refused, Rejected)
    assert (refused.attempts, refused.files_referenced) == (1, False)
    late = begun(log, store, "a", properties=CommitProperties(txn=SetTransaction(app_id="job", version=4)))
    begun(log, store, "b", properties=KEY).commit()
    lost = late.commit()
    assert isinstance(lost, Conflict)
    assert (lost.winner, lost.rule) == (1, "same_application")
    assert not store.exists(commit_path(2))


def test_discarding_counts_what_it_deleted_and_passes_over_what_it_cannot(
    log: LogBuilder, store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = [add("a%20b"), add("../outside"), add("c"), add("d")]
    for name in ("a b", "c", "d"):
        store.put(name, b"x")
    store.puts = [PutFault.DENIED]
    refused = begun(log, store, "a").commit()
    real = store.inner.delete

    def delete(path: str) -> None:
        if path == "c":
            raise StorageError("busy")
        real(path)

    monkeypatch.setattr(store.inner, "delete", delete)
    assert OwnedFiles(store=store).with_data(written).discard(refused) == 2
    assert [name for name in ("a b", "c", "d") if store.exists(name)] == ["c"]


def test_the_snapshot_after_a_commit_has_it(log: LogBuilder, store: FaultyStore) -> None:
    result = begun(log, store, "a").commit()
    assert isinstance(result, Committed)
    assert result.snapshot is not None
    assert (result.snapshot.version, result.snapshot.files.num_files) == (1, 1)


@pytest.mark.parametrize("other_bytes", [False, True])
def test_the_snapshot_after_a_recovered_commit_has_it(
    log: LogBuilder, store: FaultyStore, monkeypatch: pytest.MonkeyPatch, other_bytes: bool
) -> None:
    transaction = begun(log, store, "a")
    store.puts = [PutFault.DROP_RESPONSE]
    if other_bytes:
        real = store.read
        monkeypatch.setattr(store, "read", lambda path: real(path) + b"\n")
    result = transaction.commit()
    assert isinstance(result, Committed)
    assert result.recovered
    assert result.snapshot is not None
    assert result.snapshot.files.num_files == 1


def test_an_observer_is_told_before_anything_is_sent(log: LogBuilder, store: FaultyStore) -> None:
    class Told:
        seen: ClassVar[list[tuple[str, int, int]]] = []

        def on_phase(self, phase: CommitPhase, version: int) -> None:
            self.seen.append((phase.value, version, len(store.put_paths)))

    begun(log, store, "a").commit()
    store.put_paths.clear()
    begun(log, store, "b", observer=Told()).commit()
    assert Told.seen == [
        ("prepared", 2, 0),
        ("before_put", 2, 0),
        ("after_put", 2, 1),
        ("committed", 2, 1),
    ]


def test_the_snapshot_after_a_creation_has_the_clock(log: LogBuilder, tmp_path: Path) -> None:
    store = LocalLogStore(tmp_path / "made", clock=log.clock)
    made = Transaction.create(store, clock=log.clock).add(protocol(), metadata()).commit()
    assert isinstance(made, Committed)
    assert made.snapshot is not None
    assert (made.snapshot.version, made.snapshot.clock) == (0, log.clock)


@pytest.mark.parametrize(
    ("staged", "found"),
    [
        ([], {"job": 3}),
        ([SetTransaction(app_id="job", version=3)], {"job": 3}),
        ([SetTransaction(app_id="other", version=9)], {"job": 3, "other": 9}),
    ],
)
def test_a_key_is_in_the_commit_once(
    log: LogBuilder, store: FaultyStore, staged: list[SetTransaction], found: dict[str, int]
) -> None:
    assert isinstance(begun(log, store, "a", properties=KEY).add(*staged).commit(), Committed)
    lines = [json.loads(line) for line in store.read(commit_path(1)).splitlines()]
    txns = [line["txn"] for line in lines if "txn" in line]
    assert len(txns) == len(found)
    assert {txn["appId"]: txn["version"] for txn in txns} == found


def test_parameters_and_metrics_are_texts() -> None:
    values = {"text": "ä b", "list": ["a", "b"], "map": {"a": 1, "b": None}, "flag": True, "none": None}
    strings = {"text": "ä b", "list": '["a","b"]', "map": '{"a":1,"b":null}', "flag": "true"}
    assert encode_parameters(values) == strings
    assert encode_metrics(values) == strings
    assert encode_metrics({"path": Path("x")}) == {"path": '"x"'}
