"""Row ids: unique, above every one given out, with the version really written, kept by what comes again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from delta_core.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from delta_core.actions.json_codec import encode_commit
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import ManualClock
from delta_core.dml.group_commit import GroupCommit
from delta_core.errors import (
    CommitError,
    ConcurrentAppendError,
    ConcurrentWriteError,
    CorruptLogError,
    InvalidTableError,
    RowTrackingDisabledError,
)
from delta_core.log.log_path import commit_path
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.transaction.commit_result import Committed, Conflict, raise_for_result
from delta_core.transaction.conflict_checker import RuleViolation
from delta_core.transaction.conflict_resolver import Resolution
from delta_core.transaction.file_actions import add_actions
from delta_core.transaction.row_ids import DOMAIN, PRESERVED_TAG, SUSPENDED, watermark_of
from delta_core.transaction.transaction import Transaction
from delta_core.transaction.winning_commit import WinningCommit
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.writable_features import let_write

START_MS = 1_700_000_000_000
SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
METADATA = Metadata(id="table", schema_string=SCHEMA)
FEATURES = frozenset({"rowTracking", "domainMetadata", "appendOnly"})
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=7, writer_features=FEATURES)
UNTRACKED = replace(PROTOCOL, writer_features=frozenset({"domainMetadata"}))
ENABLED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row_id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row_version",
}
DELETION_VECTOR = DeletionVectorDescriptor(
    storage_type="i", path_or_inline_dv="x" * 20, size_in_bytes=4, cardinality=2
)


@pytest.fixture(autouse=True)
def _writable(monkeypatch: pytest.MonkeyPatch) -> None:
    let_write(monkeypatch, "rowTracking")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> FaultyStore:
    return FaultyStore(LocalLogStore(tmp_path, clock=clock))


def add(path: str, rows: int | None = 1, **changes: Any) -> AddFile:
    stats = None if rows is None else json.dumps({"numRecords": rows})
    return AddFile(path=path, size_bytes=1, modification_time_ms=START_MS, stats=stats, **changes)


def removed(file: AddFile) -> RemoveFile:
    return RemoveFile(
        path=file.path,
        deletion_timestamp_ms=START_MS,
        data_change=file.data_change,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )


def enabled(**changes: str) -> Metadata:
    return replace(METADATA, configuration=ENABLED | changes)


def create(store: FaultyStore, clock: ManualClock, *actions: Action) -> Snapshot:
    raise_for_result(Transaction.create(store, clock=clock).add(*actions).commit())
    return Snapshot.load(store, clock=clock)


def begin(
    store: FaultyStore, clock: ManualClock, base: Snapshot | None = None, **options: Any
) -> Transaction:
    base = base or Snapshot.load(store, clock=clock)
    return Transaction.begin(base, operation="WRITE", clock=clock, random=Random(1), **options)


def numbers(snapshot: Snapshot) -> dict[str, tuple[int | None, int | None]]:
    return {
        add.path: (add.base_row_id, add.default_row_commit_version)
        for add in add_actions(snapshot.files.to_table(), data_change=True)
    }


def watermark(snapshot: Snapshot) -> int | None:
    found = snapshot.domain(DOMAIN)
    assert found == snapshot.domain_metadata.get(DOMAIN)
    return None if found is None else watermark_of(found)


def test_new_files_are_numbered_from_the_watermark_on(store: FaultyStore, clock: ManualClock) -> None:
    first = create(store, clock, PROTOCOL, METADATA, add("a", 3), add("b", 2))
    assert numbers(first) == {"a": (0, 0), "b": (3, 0)}
    assert watermark(first) == 4
    done = begin(store, clock).add(add("c", 1), add("empty", 0), add("d", 1)).commit()
    assert isinstance(done, Committed)
    assert done.snapshot is not None
    assert numbers(done.snapshot) == {
        **numbers(first), "c": (5, 1), "empty": (6, 1), "d": (6, 1)
    }  # fmt: skip
    assert watermark(done.snapshot) == watermark(Snapshot.load(store)) == 6


def test_a_commit_without_new_rows_says_no_watermark(store: FaultyStore, clock: ManualClock) -> None:
    create(store, clock, PROTOCOL, METADATA)
    raise_for_result(begin(store, clock).commit())
    raise_for_result(begin(store, clock).add(add("empty", 0)).commit())
    for version in range(3):
        assert not any(isinstance(a, DomainMetadata) for a in commit_actions(store, version))
    assert watermark(Snapshot.load(store)) is None
    assert numbers(Snapshot.load(store)) == {"empty": (0, 2)}


@pytest.mark.parametrize("winners", [1, 3])
def test_whoever_comes_second_counts_on(store: FaultyStore, clock: ManualClock, winners: int) -> None:
    """The winners' watermark and the version really written; no conflict over the domain."""
    base = create(store, clock, PROTOCOL, METADATA, add("a", 3))
    mine = begin(store, clock, base).add(add("mine", 5), add("mine2", 5))
    for number in range(winners):
        raise_for_result(begin(store, clock).add(add(f"w{number}", 10)).commit())
    done = raise_for_result(mine.commit())
    assert done.version == winners + 1
    top = 3 + 10 * winners
    after = Snapshot.load(store)
    assert numbers(after)["mine"] == (top, winners + 1)
    assert numbers(after)["mine2"] == (top + 5, winners + 1)
    assert watermark(after) == top + 9


def test_every_try_of_one_version_has_the_same_bytes(store: FaultyStore, clock: ManualClock) -> None:
    create(store, clock, PROTOCOL, METADATA, add("a", 3))
    store.put_bodies.clear()
    store.puts = [PutFault.DROP_REQUEST, PutFault.CONFLICT_409]
    raise_for_result(begin(store, clock).add(add("b", 3)).commit())
    assert len(store.put_bodies) == 3
    assert len(set(store.put_bodies)) == 1


def test_a_file_that_is_added_again_keeps_its_numbers(store: FaultyStore, clock: ManualClock) -> None:
    """By its own fields, as from `add_actions`, or by those of its `remove` in the same commit."""
    before = create(store, clock, PROTOCOL, METADATA, add("a", 3), add("b", 2))
    a, b = add_actions(before.files.to_table(), data_change=False)
    raise_for_result(begin(store, clock).add(replace(a, stats='{"numRecords":3,"x":1}')).commit())
    anew = add("b", 2, data_change=False, deletion_vector=DELETION_VECTOR)
    raise_for_result(begin(store, clock).add(removed(b), anew, add("c", 4)).commit())
    after = Snapshot.load(store)
    assert numbers(after) == {"a": (0, 0), "b": (3, 0), "c": (5, 2)}
    assert watermark(after) == 8


def test_rows_that_a_vector_hides_have_ids_too(store: FaultyStore, clock: ManualClock) -> None:
    create(store, clock, PROTOCOL, METADATA)
    raise_for_result(
        begin(store, clock).add(add("a", 10, deletion_vector=DELETION_VECTOR), add("b", 1)).commit()
    )
    actions = [a for a in commit_actions(store, 1) if isinstance(a, AddFile)]
    assert [a.base_row_id for a in actions] == [0, 10]


def test_ids_that_are_brought_along_raise_the_watermark(store: FaultyStore, clock: ManualClock) -> None:
    """As a clone brings its source's, or says how far the source had come."""
    brought = add("a", 5, base_row_id=100, default_row_commit_version=7)
    snapshot = create(store, clock, PROTOCOL, METADATA, brought, add("b", 2))
    assert numbers(snapshot) == {"a": (100, 7), "b": (105, 0)}
    assert watermark(snapshot) == 106
    staged = DomainMetadata(domain=DOMAIN, configuration='{"rowIdHighWaterMark":999}')
    raise_for_result(begin(store, clock).add(staged, add("c", 1)).commit())
    after = Snapshot.load(store)
    assert numbers(after)["c"] == (1000, 1)
    assert watermark(after) == 1000
    assert sum(isinstance(a, DomainMetadata) for a in commit_actions(store, 1)) == 1


def test_a_file_without_a_row_count_is_refused(store: FaultyStore, clock: ManualClock) -> None:
    create(store, clock, PROTOCOL, METADATA)
    for stats in (None, "{}", "[]", "no json", '{"numRecords":true}', '{"numRecords":-1}'):
        with pytest.raises(CommitError, match="Row ids cannot be assigned") as refused:
            begin(store, clock).add(replace(add("x"), stats=stats)).prepare()
        assert "numRecords" in refused.value.fix
    assert not store.inner.list_directory("_delta_log") or Snapshot.load(store).version == 0


def test_ids_come_to_an_end(store: FaultyStore, clock: ManualClock) -> None:
    last = DomainMetadata(domain=DOMAIN, configuration=json.dumps({"rowIdHighWaterMark": 2**63 - 2}))
    create(store, clock, PROTOCOL, METADATA, last)
    raise_for_result(begin(store, clock).add(add("a", 1)).commit())
    with pytest.raises(CommitError, match="no row ids left"):
        begin(store, clock).add(add("b", 1)).prepare()


@pytest.mark.parametrize("configuration", ["{}", "[]", "x", '{"rowIdHighWaterMark":"7"}'])
def test_a_watermark_that_says_nothing(store: FaultyStore, clock: ManualClock, configuration: str) -> None:
    create(store, clock, UNTRACKED, METADATA, DomainMetadata(domain=DOMAIN, configuration=configuration))
    with pytest.raises(CorruptLogError, match="cannot be read"):
        begin(store, clock).add(PROTOCOL).prepare()


def test_a_winner_whose_watermark_says_nothing_is_a_conflict(store: FaultyStore, clock: ManualClock) -> None:
    base = create(store, clock, PROTOCOL, METADATA)
    mine = begin(store, clock, base).add(add("mine"))
    broken = DomainMetadata(domain=DOMAIN, configuration="{}")
    theirs = encode_commit([CommitInfo(operation="WRITE"), broken])
    store.inner.put_if_absent(commit_path(1), theirs)
    result = mine.commit()
    assert isinstance(result, Conflict)
    assert (result.rule, result.winner) == ("unreadable_winner", 1)


def test_the_domain_stays_while_rows_are_numbered(store: FaultyStore, clock: ManualClock) -> None:
    create(store, clock, PROTOCOL, METADATA, add("a"))
    tombstone = DomainMetadata(domain=DOMAIN, configuration="", removed=True)
    with pytest.raises(CommitError, match="cannot be removed"):
        begin(store, clock).add(tombstone).prepare()
    suspended = replace(METADATA, configuration={SUSPENDED: "true"})
    raise_for_result(begin(store, clock).add(tombstone, suspended).commit())
    assert watermark(Snapshot.load(store)) is None


def test_suspended_tables_number_nothing(store: FaultyStore, clock: ManualClock) -> None:
    snapshot = create(store, clock, PROTOCOL, replace(METADATA, configuration={SUSPENDED: "true"}), add("a"))
    assert numbers(snapshot) == {"a": (None, None)}
    assert watermark(snapshot) is None


def test_no_row_comes_without_an_id_where_each_is_promised_one(
    store: FaultyStore, clock: ManualClock
) -> None:
    """Another writer may have left both properties on."""
    create(store, clock, PROTOCOL, enabled(), add("a"))
    both = enabled(**{SUSPENDED: "true"})
    with pytest.raises(InvalidTableError, match="enabled and suspended at the same time"):
        begin(store, clock).add(both).prepare()
    store.put_if_absent(commit_path(1), encode_commit([CommitInfo(), both]))
    with pytest.raises(InvalidTableError, match="enabled and suspended at the same time") as caught:
        begin(store, clock).add(add("b")).prepare()
    assert "enable_row_tracking" in caught.value.fix
    raise_for_result(begin(store, clock).add(SetTransaction(app_id="job", version=1)).commit())
    raise_for_result(begin(store, clock).add(replace(METADATA, configuration={SUSPENDED: "true"})).commit())
    raise_for_result(begin(store, clock).add(add("b")).commit())
    assert numbers(Snapshot.load(store)) == {"a": (0, 0), "b": (None, None)}


def test_another_domain_conflicts_as_ever(store: FaultyStore, clock: ManualClock) -> None:
    base = create(store, clock, PROTOCOL, METADATA)
    mine = begin(store, clock, base).add(DomainMetadata(domain="d", configuration="1"), add("mine"))
    raise_for_result(begin(store, clock).add(DomainMetadata(domain="d", configuration="2")).commit())
    result = mine.commit()
    assert isinstance(result, Conflict)
    assert isinstance(result.error, ConcurrentWriteError)


def test_the_feature_needs_domains(store: FaultyStore, clock: ManualClock) -> None:
    alone = replace(PROTOCOL, writer_features=frozenset({"rowTracking"}))
    with pytest.raises(InvalidTableError, match="Row ids cannot be assigned"):
        Transaction.create(store, clock=clock).add(alone, METADATA).commit()


class TestEnabling:
    def test_rows_without_ids_stand_in_the_way(self, store: FaultyStore, clock: ManualClock) -> None:
        old = create(store, clock, UNTRACKED, METADATA, add("a", 2))
        with pytest.raises(InvalidTableError, match="enabled yet"):
            begin(store, clock).add(PROTOCOL, enabled()).prepare()
        (file,) = add_actions(old.files.to_table(), data_change=False)
        raise_for_result(begin(store, clock).add(PROTOCOL, enabled(), file).commit())
        assert numbers(Snapshot.load(store)) == {"a": (0, 1)}

    def test_it_needs_the_feature_names_and_no_suspension(
        self, store: FaultyStore, clock: ManualClock
    ) -> None:
        create(store, clock, UNTRACKED, METADATA)
        with pytest.raises(RowTrackingDisabledError):
            begin(store, clock).add(enabled()).prepare()
        nameless = replace(METADATA, configuration={"delta.enableRowTracking": "true"})
        with pytest.raises(InvalidTableError, match="names of the hidden columns"):
            begin(store, clock).add(PROTOCOL, nameless).prepare()
        with pytest.raises(InvalidTableError, match="suspended"):
            begin(store, clock).add(PROTOCOL, enabled(**{SUSPENDED: "true"})).prepare()

    def test_rows_that_come_without_ids_meanwhile_conflict(
        self, store: FaultyStore, clock: ManualClock
    ) -> None:
        base = create(store, clock, UNTRACKED, METADATA)
        mine = begin(store, clock, base).add(PROTOCOL, enabled())
        raise_for_result(begin(store, clock).add(add("theirs")).commit())
        result = mine.commit()
        assert isinstance(result, Conflict)
        assert result.rule == "unnumbered_rows"
        assert isinstance(result.error, ConcurrentAppendError)

    def test_rows_that_come_with_ids_meanwhile_do_not(self, store: FaultyStore, clock: ManualClock) -> None:
        base = create(store, clock, PROTOCOL, METADATA, add("a"))
        mine = begin(store, clock, base).add(enabled())
        raise_for_result(begin(store, clock).add(add("theirs", 4)).commit())
        raise_for_result(mine.commit())
        assert numbers(Snapshot.load(store)) == {"a": (0, 0), "theirs": (1, 1)}


def tag(store: FaultyStore, version: int) -> str | None:
    info = next(a for a in commit_actions(store, version) if isinstance(a, CommitInfo))
    tags = info.extra.get("tags")
    return None if tags is None else tags.get(PRESERVED_TAG)


def test_whether_rows_kept_their_ids_is_told(store: FaultyStore, clock: ManualClock) -> None:
    snapshot = create(store, clock, PROTOCOL, enabled(), add("a"), add("b"), add("c"))
    a, b, c = add_actions(snapshot.files.to_table(), data_change=True)
    cases: list[tuple[bool | None, tuple[Action, ...], str]] = [
        (None, (add("appended"),), "true"),
        (None, (), "true"),
        (None, (removed(a),), "true"),
        (None, (removed(b), replace(b, deletion_vector=DELETION_VECTOR)), "true"),
        (None, (removed(replace(b, deletion_vector=DELETION_VECTOR)), add("rewritten")), "false"),
        (True, (removed(c), add("copied")), "true"),
        (False, (add("d"),), "false"),
    ]
    for said, actions, expected in cases:
        transaction = begin(store, clock).add(*actions)
        if said is not None:
            transaction.preserve_rows(said)
        done = raise_for_result(transaction.commit())
        assert tag(store, done.version) == expected


def test_tables_without_row_tracking_tell_nothing(store: FaultyStore, clock: ManualClock) -> None:
    create(store, clock, PROTOCOL, METADATA)
    raise_for_result(begin(store, clock).add(add("a")).preserve_rows(True).commit())
    assert tag(store, 1) is None


@pytest.mark.parametrize("state", ["fresh", "with files", "from a checkpoint", "followed"])
def test_the_watermark_needs_no_file_list(
    store: FaultyStore, clock: ManualClock, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(store, clock, PROTOCOL, METADATA, add("a", 3))
    raise_for_result(begin(store, clock).add(add("b", 3)).commit())
    if state == "from a checkpoint":
        write_checkpoint(Snapshot.load(store, clock=clock))
        store.inner.delete(commit_path(0))
        raise_for_result(begin(store, clock).commit())
    snapshot = Snapshot.load(store, clock=clock)
    if state in ("with files", "followed"):
        assert snapshot.files.num_files == 2
    if state == "followed":
        done = begin(store, clock, snapshot).add(add("c", 1)).commit()
        assert isinstance(done, Committed)
        assert done.snapshot is not None
        snapshot = done.snapshot

    def refuse(self: Snapshot) -> None:
        raise AssertionError("the file list is read")

    monkeypatch.setattr(Snapshot, "_state", refuse)
    done = begin(store, clock, snapshot).add(add("z", 1)).commit()
    assert isinstance(done, Committed)
    (z,) = [a for a in commit_actions(store, done.version) if isinstance(a, AddFile)]
    assert z.base_row_id == (7 if state == "followed" else 6)


def test_a_settled_conflict_keeps_the_winners_watermark(store: FaultyStore, clock: ManualClock) -> None:
    """Two commits remove one file; a resolver lets the second go on without it."""
    base = create(store, clock, PROTOCOL, METADATA, add("a", 3))
    (a,) = add_actions(base.files.to_table(), data_change=True)

    class Drop:
        def resolve(
            self, violation: RuleViolation, winner: WinningCommit, actions: Any, *, transaction: Any
        ) -> Resolution:
            left = [action for action in actions if not isinstance(action, RemoveFile)]
            return Resolution(actions=left, rest=winner)

    mine = begin(store, clock, base, resolver=Drop()).add(removed(a), add("mine", 5))
    raise_for_result(begin(store, clock).add(removed(a), add("theirs", 10)).commit())
    raise_for_result(mine.commit())
    assert numbers(Snapshot.load(store)) == {"theirs": (3, 1), "mine": (13, 2)}


def test_a_group_of_appends_is_numbered(store: FaultyStore, clock: ManualClock, tmp_path: Path) -> None:
    create(store, clock, PROTOCOL, enabled())

    def parts() -> Iterator[pa.Table]:
        for number in range(6):
            yield pa.table({"a": pa.array([number] * 3, pa.int64())})

    with GroupCommit(tmp_path, max_appends=2) as group:
        done = [group.append(rows) for rows in parts()]
    versions = {outcome.result().version for outcome in done}
    snapshot = Snapshot.load(store)
    files = sorted(numbers(snapshot).values())
    assert [base for base, _ in files] == sorted({base for base, _ in files})
    assert {version for _, version in files} == versions
    assert watermark(snapshot) == 17
