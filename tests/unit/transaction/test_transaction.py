"""Transactions on a real local table: provenance, idempotency, rebase, refusals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from delta_core.actions import AddFile, CommitInfo, Metadata, Protocol, RemoveFile, SetTransaction
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import ManualClock
from delta_core.errors import (
    CommitError,
    ConcurrentDeleteDeleteError,
    InvalidTableError,
    ProtocolChangedError,
    StaleCommitError,
    UnsupportedTableFeatureError,
)
from delta_core.log.log_path import commit_path
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import (
    AlreadyApplied,
    Committed,
    Conflict,
    Rejected,
    already_applied,
    may_discard_files,
    raise_for_result,
)
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction
from delta_core.version import VERSION
from tests.support.faulty_store import FaultyStore, PutFault

START_MS = 1_700_000_000_000
SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
METADATA = Metadata(id="table", schema_string=SCHEMA)
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)


def add(path: str, *, data_change: bool = True) -> AddFile:
    return AddFile(
        path=path,
        size_bytes=1,
        modification_time_ms=START_MS,
        data_change=data_change,
        stats='{"numRecords":1}',
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> FaultyStore:
    store = FaultyStore(LocalLogStore(tmp_path, clock=clock))
    created = Transaction.create(store, clock=clock).add(PROTOCOL, METADATA, add("f0")).commit()
    assert isinstance(created, Committed)
    assert created.version == 0
    store.put_paths.clear()
    return store


def begin(store: FaultyStore, clock: ManualClock, **options: Any) -> Transaction:
    snapshot = options.pop("snapshot", None) or Snapshot.load(store, clock=clock)
    options.setdefault("operation", "WRITE")
    return Transaction.begin(snapshot, clock=clock, random=Random(1), **options)


def commit_info(store: FaultyStore, version: int) -> dict[str, Any]:
    first = json.loads(store.inner.read(commit_path(version)).splitlines()[0])
    assert list(first) == ["commitInfo"], "the provenance is the first line"
    return dict(first["commitInfo"])


def test_provenance_is_complete_and_text(store: FaultyStore, clock: ManualClock) -> None:
    transaction = begin(
        store,
        clock,
        operation="WRITE",
        operation_parameters={"mode": "Append", "partitionBy": ["p"], "auto": False, "predicate": None},
        properties=CommitProperties(user_metadata='{"run":1}', user_name="ada"),
    )
    result = transaction.add(add("f1")).set_metrics({"numFiles": 1, "skipped": None}).commit()
    assert isinstance(result, Committed)
    assert commit_info(store, 1) == {
        "timestamp": START_MS,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": '["p"]', "auto": "false"},
        "operationMetrics": {"numFiles": "1"},
        "engineInfo": f"deltaward/{VERSION}",
        "userName": "ada",
        "userMetadata": '{"run":1}',
        "isolationLevel": "WriteSerializable",
        "isBlindAppend": True,
        "readVersion": 0,
        "txnId": transaction.txn_id,
    }
    assert result.txn_id == transaction.txn_id
    assert result.operation_metrics == {"numFiles": "1"}


def test_rebase_updates_the_read_version_and_keeps_the_id(store: FaultyStore, clock: ManualClock) -> None:
    mine = begin(store, clock).add(add("mine"))
    for number in range(3):
        raise_for_result(begin(store, clock).add(add(f"other{number}")).commit())
    result = mine.commit()
    assert isinstance(result, Committed)
    assert (result.version, result.attempts) == (4, 2)
    info = commit_info(store, 4)
    assert (info["readVersion"], info["txnId"]) == (3, mine.txn_id)
    assert result.snapshot is not None
    assert result.snapshot.version == 4
    assert result.snapshot.files.num_files == 5


def test_rebase_reads_each_winner_once_and_lists_nothing(store: FaultyStore, clock: ManualClock) -> None:
    mine = begin(store, clock).add(add("mine"))
    for number in range(3):
        raise_for_result(begin(store, clock).add(add(f"other{number}")).commit())
    seen: list[tuple[list[str], list[str]]] = []

    class Recorder:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.COMMITTED:
                seen.append((list(store.read_paths), list(store.listed)))

    mine._observer = Recorder()
    store.read_paths.clear()
    store.listed.clear()
    raise_for_result(mine.commit())
    assert seen == [([commit_path(v) for v in (1, 2, 3, 4)], [])]


def test_snapshot_after_a_commit_reads_and_lists_nothing(store: FaultyStore, clock: ManualClock) -> None:
    transaction = begin(store, clock).add(add("f1"))
    store.read_paths.clear()
    store.listed.clear()
    result = raise_for_result(transaction.commit())
    assert result.snapshot is not None
    assert result.snapshot.version == 1
    assert (store.read_paths, store.listed) == ([], [])
    read_anew = Snapshot.load(store, clock=clock)
    assert result.snapshot.segment == read_anew.segment
    assert result.snapshot.files.to_table() == read_anew.files.to_table()
    assert result.snapshot.refresh() is result.snapshot


def test_snapshot_with_many_commits_is_read_anew(
    store: FaultyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_core.transaction.transaction.MAX_COMMITS_IN_SEGMENT", 3)
    snapshot = Snapshot.load(store, clock=clock)
    for number in range(1, 6):
        if number == 3:
            write_checkpoint(snapshot)
        committed = begin(store, clock, snapshot=snapshot).add(add(f"f{number}")).commit()
        assert isinstance(committed, Committed)
        assert committed.snapshot is not None
        snapshot = committed.snapshot
        assert snapshot.version == number
    assert snapshot.segment.checkpoint_version == 2
    assert snapshot.files.num_files == 6


def test_a_long_log_without_checkpoints_is_not_read_again_for_each_commit(
    store: FaultyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_core.transaction.transaction.MAX_COMMITS_IN_SEGMENT", 5)
    snapshot = Snapshot.load(store, clock=clock)
    store.listed.clear()
    for number in range(1, 31):
        committed = begin(store, clock, snapshot=snapshot).add(add(f"f{number}")).commit()
        assert isinstance(committed, Committed)
        assert committed.snapshot is not None
        snapshot = committed.snapshot
    assert snapshot.files.num_files == 31
    # Each reading of the log lists it once.
    assert len(store.listed) <= 30 // 5


class TestIdempotency:
    KEY = SetTransaction(app_id="job", version=3)

    def test_key_is_written_and_then_found(self, store: FaultyStore, clock: ManualClock) -> None:
        properties = CommitProperties(txn=self.KEY)
        raise_for_result(begin(store, clock, properties=properties).add(add("f1")).commit())
        assert SetTransaction(app_id="job", version=3, last_updated_ms=START_MS) in commit_actions(store, 1)
        store.put_paths.clear()
        again = begin(store, clock, properties=properties).add(add("f2")).commit()
        assert isinstance(again, AlreadyApplied)
        assert isinstance(again, Committed)
        assert (again.version, again.already_applied, again.attempts) == (1, True, 0)
        assert again.transaction.version == 3
        assert store.put_paths == []

    @pytest.mark.parametrize(("version", "applied"), [(2, True), (3, True), (4, False)])
    def test_earlier_steps_count_as_applied(
        self, store: FaultyStore, clock: ManualClock, version: int, applied: bool
    ) -> None:
        key = CommitProperties(txn=self.KEY)
        raise_for_result(begin(store, clock, properties=key).add(add("f1")).commit())
        snapshot = Snapshot.load(store)
        asked = SetTransaction(app_id="job", version=version)
        assert (already_applied(snapshot, asked) is not None) is applied
        assert already_applied(snapshot, SetTransaction(app_id="another", version=0)) is None

    def test_twin_that_wins_the_race_is_found_at_the_rebase(
        self, store: FaultyStore, clock: ManualClock
    ) -> None:
        properties = CommitProperties(txn=self.KEY)
        slow = begin(store, clock, properties=properties).add(add("slow"))
        raise_for_result(begin(store, clock).add(add("other")).commit())
        raise_for_result(begin(store, clock, properties=properties).add(add("twin")).commit())
        result = slow.commit()
        assert isinstance(result, AlreadyApplied)
        assert result.version == 2
        assert result.snapshot is not None
        assert result.snapshot.version == 2
        assert not store.exists(commit_path(3))

    def test_another_step_of_the_same_job_conflicts(self, store: FaultyStore, clock: ManualClock) -> None:
        later = begin(store, clock, properties=CommitProperties(txn=replace(self.KEY, version=4)))
        raise_for_result(
            begin(store, clock, properties=CommitProperties(txn=self.KEY)).add(add("x")).commit()
        )
        result = later.add(add("y")).commit()
        assert isinstance(result, Conflict)
        assert result.rule == "same_application"


class TestConflicts:
    def test_two_removes_of_one_file(self, store: FaultyStore, clock: ManualClock) -> None:
        first = begin(store, clock).add(RemoveFile(path="f0"), add("x")).read_files(["f0"])
        second = begin(store, clock).add(
            RemoveFile(path="f0", data_change=False), add("y", data_change=False)
        )
        raise_for_result(first.commit())
        result = second.commit()
        assert isinstance(result, Conflict)
        assert (result.rule, result.winner) == ("delete_delete", 1)
        with pytest.raises(ConcurrentDeleteDeleteError, match="version 1"):
            raise_for_result(result)

    def test_rearrangement_passes_an_append(self, store: FaultyStore, clock: ManualClock) -> None:
        compaction = begin(store, clock, operation="OPTIMIZE")
        compaction.add(RemoveFile(path="f0", data_change=False), add("compact", data_change=False))
        raise_for_result(begin(store, clock).add(add("x")).commit())
        result = raise_for_result(compaction.commit())
        assert result.version == 2
        info = commit_info(store, 2)
        assert (info["isolationLevel"], info["isBlindAppend"]) == ("SnapshotIsolation", False)

    @pytest.mark.parametrize(
        ("level", "conflicts"),
        [(IsolationLevel.SERIALIZABLE, True), (IsolationLevel.WRITE_SERIALIZABLE, False)],
    )
    def test_level_decides_about_blind_appends(
        self, store: FaultyStore, clock: ManualClock, level: IsolationLevel, conflicts: bool
    ) -> None:
        overwrite = begin(store, clock, isolation=level).read_predicate(None)
        overwrite.add(RemoveFile(path="f0"), add("new"))
        raise_for_result(begin(store, clock).add(add("x")).commit())
        assert isinstance(overwrite.commit(), Conflict) is conflicts

    def test_table_property_sets_the_level(self, store: FaultyStore, clock: ManualClock) -> None:
        strict = replace(METADATA, configuration={"delta.isolationLevel": "Serializable"})
        raise_for_result(begin(store, clock, operation="SET TBLPROPERTIES").add(strict).commit())
        raise_for_result(begin(store, clock).add(add("f1")).commit())
        assert commit_info(store, 2)["isolationLevel"] == "Serializable"

    def test_creators_race(self, tmp_path: Path, clock: ManualClock) -> None:
        store = LocalLogStore(tmp_path / "raced", clock=clock)
        winner = Transaction.create(store, clock=clock).add(PROTOCOL, METADATA)
        loser = Transaction.create(store, clock=clock).add(PROTOCOL, replace(METADATA, id="other"))
        raise_for_result(winner.commit())
        result = loser.commit()
        assert isinstance(result, Conflict)
        assert isinstance(result.error, ProtocolChangedError)
        assert Snapshot.load(store).metadata.id == "table"

    def test_a_creator_sends_nothing_where_the_table_is_there(
        self, store: FaultyStore, clock: ManualClock
    ) -> None:
        """What was sent could arrive when a cleanup has made version 0 free, and name files that are gone."""
        store.put_paths.clear()
        creation = Transaction.create(store, clock=clock).add(PROTOCOL, METADATA, add("mine"))
        result = creation.commit()
        assert isinstance(result, Conflict)
        assert isinstance(result.error, ProtocolChangedError)
        assert may_discard_files(result)
        assert store.put_paths == []


class TestRefusals:
    def test_append_only_table_keeps_its_rows(self, store: FaultyStore, clock: ManualClock) -> None:
        only = replace(METADATA, configuration={"delta.appendOnly": "true"})
        raise_for_result(begin(store, clock).add(only).commit())
        with pytest.raises(InvalidTableError, match="append-only"):
            begin(store, clock, operation="DELETE").add(RemoveFile(path="f0")).commit()
        rearranged = begin(store, clock).add(
            RemoveFile(path="f0", data_change=False), add("f1", data_change=False)
        )
        assert isinstance(rearranged.commit(), Committed)

    @pytest.mark.parametrize(
        "actions",
        [
            [add("x"), add("x")],
            [RemoveFile(path="f0"), RemoveFile(path="f0")],
            [METADATA, METADATA],
            [PROTOCOL, PROTOCOL],
        ],
    )
    def test_contradicting_actions(self, store: FaultyStore, clock: ManualClock, actions: list[Any]) -> None:
        with pytest.raises(CommitError):
            begin(store, clock).add(*actions).commit()
        assert store.put_paths == []

    def test_creation_needs_protocol_and_metadata(self, tmp_path: Path) -> None:
        store = LocalLogStore(tmp_path / "new")
        with pytest.raises(CommitError, match="no protocol or no metadata"):
            Transaction.create(store).add(METADATA).commit()

    def test_transaction_commits_once(self, store: FaultyStore, clock: ManualClock) -> None:
        transaction = begin(store, clock).add(add("x"))
        raise_for_result(transaction.commit())
        with pytest.raises(CommitError, match="already committed"):
            transaction.commit()

    def test_sealed_transaction_takes_no_more(self, store: FaultyStore, clock: ManualClock) -> None:
        transaction = begin(store, clock).add(add("x")).prepare()
        with pytest.raises(CommitError, match="sealed"):
            transaction.add(add("y"))

    def test_unsupported_feature_is_named(self, store: FaultyStore, clock: ManualClock) -> None:
        upgrade = Protocol(
            min_reader_version=1, min_writer_version=7, writer_features=frozenset({"unheardOf"})
        )
        with pytest.raises(UnsupportedTableFeatureError, match="unheardOf"):
            begin(store, clock).add(upgrade).commit()

    def test_old_snapshot_is_refused(self, store: FaultyStore, clock: ManualClock) -> None:
        transaction = begin(store, clock, verified_at_ms=START_MS - 16 * 86_400_000).add(add("x"))
        result = transaction.commit()
        assert isinstance(result, Rejected)
        assert isinstance(result.error, StaleCommitError)


class TestTableMadeAnew:
    """The log under an open snapshot is deleted, and another table is put in its place."""

    OTHER = replace(METADATA, id="other")

    def made_anew(self, root: Path, store: FaultyStore, clock: ManualClock, *, versions: int) -> None:
        shutil.rmtree(root / "_delta_log")
        raise_for_result(Transaction.create(store, clock=clock).add(PROTOCOL, self.OTHER).commit())
        for number in range(1, versions):
            raise_for_result(begin(store, clock).add(add(f"anew{number}")).commit())

    @pytest.mark.parametrize("versions", [1, 2, 4])
    @pytest.mark.parametrize("seconds", [0, 0.001, 1.001])
    def test_commit_is_refused_and_leaves_no_hole(
        self, tmp_path: Path, store: FaultyStore, clock: ManualClock, versions: int, seconds: float
    ) -> None:
        raise_for_result(begin(store, clock).add(add("f1")).commit())
        mine = begin(store, clock).add(add("mine"))
        clock.advance(seconds)
        self.made_anew(tmp_path, store, clock, versions=versions)
        result = mine.commit()
        assert isinstance(result, Rejected)
        assert isinstance(result.error, StaleCommitError)
        assert may_discard_files(result)
        assert Snapshot.load(store, clock=clock).version == versions - 1

    @pytest.mark.parametrize("seconds", [0, 0.001, 1.001])
    def test_commit_to_a_deleted_table_is_refused(
        self, tmp_path: Path, store: FaultyStore, clock: ManualClock, seconds: float
    ) -> None:
        mine = begin(store, clock).add(add("mine"))
        clock.advance(seconds)
        shutil.rmtree(tmp_path / "_delta_log")
        assert isinstance(mine.commit(), Rejected)
        assert not Snapshot.exists(store)

    def test_the_version_that_was_read_is_looked_at_once(
        self, store: FaultyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked: list[str] = []
        head = store.head
        monkeypatch.setattr(store, "head", lambda path: looked.append(path) or head(path))
        mine = begin(store, clock).add(add("mine"))
        raise_for_result(begin(store, clock).add(add("theirs")).commit())
        looked.clear()
        assert isinstance(mine.commit(), Committed)
        assert looked.count(commit_path(0)) == 1


class TestDiscarding:
    def test_only_definite_failures_delete(self, store: FaultyStore, clock: ManualClock) -> None:
        store.put("w%1/x", b"data")
        written = [replace(add("w%251/x"), size_bytes=4)]
        transaction = begin(store, clock).add(*written)
        store.puts = [PutFault.DROP_REQUEST]
        store.failing_reads = 8
        unknown = transaction.commit()
        owned = OwnedFiles(store=store).with_data(written)
        assert owned.discard(unknown) == 0
        assert store.exists("w%1/x")
        store.puts = [PutFault.DENIED]
        rejected = begin(store, clock).add(*written).commit()
        assert owned.discard(rejected) == 1
        assert not store.exists("w%1/x")

    def test_files_outside_the_table_are_left_alone(self, store: FaultyStore, clock: ManualClock) -> None:
        store.puts = [PutFault.DENIED]
        rejected = begin(store, clock).add(add("x")).commit()
        owned = OwnedFiles(store=store).with_data([add("../../etc/passwd")])
        assert owned.discard(rejected) == 0
        assert store.deleted == []


def test_a_file_that_comes_and_goes_at_once_is_refused(store: FaultyStore, clock: ManualClock) -> None:
    with pytest.raises(CommitError, match="adds and removes"):
        begin(store, clock).add(add("f0"), RemoveFile(path="f0", deletion_timestamp_ms=1)).prepare()


@pytest.mark.parametrize("data_change", [True, False])
def test_rows_do_not_go_in_the_commit_that_makes_the_table_append_only(
    store: FaultyStore, clock: ManualClock, data_change: bool
) -> None:
    """A rearrangement may, and so may a restore, which brings the property back with the rest."""
    strict = replace(METADATA, configuration={"delta.appendOnly": "true"})
    gone = RemoveFile(path="f0", deletion_timestamp_ms=1, data_change=data_change)
    staged = (strict, gone, add("f1", data_change=data_change))
    if data_change:
        with pytest.raises(InvalidTableError, match="becomes append-only"):
            begin(store, clock).add(*staged).prepare()
        begin(store, clock).reuse_files().add(*staged).prepare()
    assert isinstance(begin(store, clock).add(strict, *staged[2:]).commit(), Committed)
    with pytest.raises(InvalidTableError, match="is append-only"):
        begin(store, clock).add(replace(gone, data_change=True), METADATA).prepare()


def test_staged_commit_info_is_replaced(store: FaultyStore, clock: ManualClock) -> None:
    raise_for_result(begin(store, clock).add(CommitInfo(operation="FORGED"), add("x")).commit())
    infos = [a for a in commit_actions(store, 1) if isinstance(a, CommitInfo)]
    assert [info.operation for info in infos] == ["WRITE"]


def test_reads_make_an_append_not_blind(store: FaultyStore, clock: ManualClock) -> None:
    raise_for_result(begin(store, clock).add(add("x")).read_files(["f0"]).commit())
    assert commit_info(store, 1)["isBlindAppend"] is False
