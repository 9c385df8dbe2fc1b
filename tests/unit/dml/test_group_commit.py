"""Many appends, few commits; each append learns what became of it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import DeltaTable, GroupCommit, write_deltalake
from delta_core.actions import AddFile, SetTransaction
from delta_core.dml import group_commit
from delta_core.errors import (
    CommitStateUnknownError,
    ConfigurationError,
    ConstraintViolationError,
    SchemaError,
    SchemaMismatchError,
    StorageError,
)
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import CommitResult, Committed
from delta_core.transaction.transaction import Transaction
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.waiting import PATIENCE_SECONDS

KEY = CommitProperties(txn=SetTransaction(app_id="a", version=1))


WRITE = group_commit.write_rows_to_files


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    write_deltalake(path, rows(0), partition_by=["part"])
    return path


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": [f"p{number % 2}" for number in ids]})


def ids(table: Path) -> list[int]:
    return sorted(PeerTable(str(table)).to_pyarrow_table()["id"].to_pylist())


def commit(table: Path, version: int) -> list[dict[str, dict[str, object]]]:
    text = (table / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


class Gate:
    """Holds the first group back until all appends are handed over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, calls: int = 1) -> None:
        self.opened = threading.Event()
        self.entered = threading.Event()
        self.left = calls
        original = GroupCommit._commit

        def held(group: GroupCommit, appends: object) -> None:
            if self.left:
                self.left -= 1
                self.entered.set()
                self.opened.wait(PATIENCE_SECONDS)
            original(group, appends)  # type: ignore[arg-type]

        monkeypatch.setattr(GroupCommit, "_commit", held)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.opened.set()


def test_appends_that_wait_for_a_commit_share_the_next(table: Path, gate: Gate) -> None:
    with GroupCommit(table) as group:
        outcomes = [group.append(rows(1))]
        assert gate.entered.wait(PATIENCE_SECONDS)
        outcomes += [group.append(rows(number)) for number in range(2, 101)]
        gate.opened.set()
        versions = Counter(outcome.result(PATIENCE_SECONDS).version for outcome in outcomes)
    assert versions == {1: 1, 2: 99}
    assert ids(table) == list(range(101))
    grouped = commit(table, 2)
    assert grouped[0]["commitInfo"]["operationParameters"]["groupedAppends"] == str(versions[2])  # type: ignore[index]
    assert sum("add" in action for action in grouped) == 2
    assert grouped[0]["commitInfo"]["isBlindAppend"] is True


def test_every_append_keeps_its_key_and_counts_once(table: Path, gate: Gate) -> None:
    with GroupCommit(table) as group:
        first = group.append(rows(1), txn=SetTransaction(app_id="a", version=1))
        second = group.append(rows(2), txn=SetTransaction(app_id="b", version=7))
        again = group.append(rows(1), txn=SetTransaction(app_id="a", version=1))
        later = group.append(rows(3), txn=SetTransaction(app_id="a", version=2))
        gate.opened.set()
        assert not first.result(PATIENCE_SECONDS).already_applied
        assert not second.result(PATIENCE_SECONDS).already_applied
        assert again.result(PATIENCE_SECONDS).already_applied
        assert not later.result(PATIENCE_SECONDS).already_applied
    assert ids(table) == [0, 1, 2, 3]
    keys = DeltaTable(table).transactions()
    assert {name: key.version for name, key in keys.items()} == {"a": 2, "b": 7}
    with GroupCommit(table) as group:
        outcome = group.append(rows(9), txn=SetTransaction(app_id="b", version=6))
        assert outcome.result(PATIENCE_SECONDS).already_applied


def test_rows_that_do_not_fit_fail_alone(table: Path, gate: Gate) -> None:
    DeltaTable(table).alter.add_constraint({"small": "id < 1000"})
    with GroupCommit(table) as group:
        group.append(rows(1))
        wrong_type = group.append(pa.table({"id": ["x"], "part": ["p0"]}))
        too_large = group.append(rows(5000))
        good = group.append(rows(2))
        gate.opened.set()
        with pytest.raises(SchemaMismatchError):
            wrong_type.result(PATIENCE_SECONDS)
        with pytest.raises(ConstraintViolationError):
            too_large.result(PATIENCE_SECONDS)
        assert good.result(PATIENCE_SECONDS).version
    assert ids(table) == [0, 1, 2]


def test_another_writer_s_key_is_found_and_its_rows_are_not_doubled(table: Path, gate: Gate) -> None:
    with GroupCommit(table) as group:
        held = group.append(rows(1), txn=KEY.txn)
        other = group.append(rows(2))
        write_deltalake(table, rows(1), mode="append", commit_properties=KEY)
        gate.opened.set()
        assert held.result(PATIENCE_SECONDS).already_applied
        assert not other.result(PATIENCE_SECONDS).already_applied
    assert ids(table) == [0, 1, 2]


def test_a_changed_schema_is_followed(table: Path, gate: Gate) -> None:
    with GroupCommit(table) as group:
        held = group.append(rows(1))
        write_deltalake(
            table, rows(2).append_column("more", pa.array([1])), mode="append", schema_mode="merge"
        )
        gate.opened.set()
        assert held.result(PATIENCE_SECONDS).version == 2
    assert ids(table) == [0, 1, 2]


def test_an_unknown_outcome_is_told_to_all_and_files_are_kept(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = FaultyStore(LocalLogStore(table))

    def open_faulty(*args: object, **options: object) -> LogStore:
        return faulty  # type: ignore[return-value]

    monkeypatch.setattr("delta_core.dml.group_commit.open_store", open_faulty)
    gate = Gate(monkeypatch)
    properties = CommitProperties(deadline_seconds=0.0)
    with GroupCommit(table, commit_properties=properties) as group:
        outcomes = [group.append(rows(number)) for number in (1, 2)]
        faulty.puts = [PutFault.DROP_REQUEST] * 20
        gate.opened.set()
        for outcome in outcomes:
            with pytest.raises(CommitStateUnknownError):
                outcome.result(PATIENCE_SECONDS)
        faulty.puts = []
        assert group.append(rows(3)).result(PATIENCE_SECONDS).version == 1
    assert faulty.deleted == []
    assert ids(table) == [0, 3]


def test_a_failure_that_nobody_foresaw_leaves_the_outcome_unknown(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = group_commit.commit_and_checkpoint

    def fails_afterwards(transaction: Transaction) -> CommitResult:
        commit(transaction)
        raise RuntimeError("out of threads")

    with GroupCommit(table) as group:
        monkeypatch.setattr(group_commit, "commit_and_checkpoint", fails_afterwards)
        with pytest.raises(CommitStateUnknownError, match="out of threads"):
            group.append(rows(1)).result(PATIENCE_SECONDS)
        monkeypatch.undo()
        group.append(rows(2)).result(PATIENCE_SECONDS)
    assert ids(table) == [0, 1, 2]


def test_a_cancelled_append_is_left_out_and_others_go_on(table: Path, gate: Gate) -> None:
    with GroupCommit(table) as group:
        group.append(rows(1))
        assert gate.entered.wait(PATIENCE_SECONDS)
        cancelled = group.append(rows(2))
        assert cancelled.cancel()
        gate.opened.set()
        # A group of none but cancelled appends is not the end.
        assert group.append(rows(3)).result(PATIENCE_SECONDS).version
    assert ids(table) == [0, 1, 3]


def test_a_closed_group_takes_nothing(table: Path) -> None:
    group = GroupCommit(table)
    group.close()
    group.close()
    with pytest.raises(ConfigurationError, match="closed"):
        group.append(rows(1))
    with pytest.raises(ConfigurationError, match="key"):
        GroupCommit(table, commit_properties=KEY)
    with pytest.raises(ConfigurationError, match="above zero"):
        GroupCommit(table, max_appends=0)


def test_waiting_rows_are_bounded(table: Path, gate: Gate) -> None:
    with GroupCommit(table, max_bytes=1) as group:
        group.append(rows(1))
        assert gate.entered.wait(PATIENCE_SECONDS)
        waiting = [group.append(rows(2))]
        thread = threading.Thread(target=lambda: waiting.append(group.append(rows(3))))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        gate.opened.set()
        thread.join(PATIENCE_SECONDS)
        assert [outcome.result(PATIENCE_SECONDS).version for outcome in waiting] == [2, 3]
    assert ids(table) == [0, 1, 2, 3]


def test_a_callback_appends_without_waiting_for_itself(table: Path) -> None:
    more: list[Future[Committed]] = []
    called = threading.Event()
    with GroupCommit(table, max_bytes=1) as group:

        def go_on(_: Future[Committed]) -> None:
            more.extend(group.append(rows(number)) for number in (2, 3, 4))
            called.set()

        group.append(rows(1)).add_done_callback(go_on)
        assert called.wait(PATIENCE_SECONDS)  # a result is there before its callbacks have run
        # Others get their turn too.
        others = [threading.Thread(target=group.append, args=(rows(5),), daemon=True)]
        others[0].start()
        others[0].join(PATIENCE_SECONDS)
        assert not others[0].is_alive()
        assert [outcome.result(PATIENCE_SECONDS).version for outcome in more]
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_a_callback_may_close_the_group(table: Path) -> None:
    group = GroupCommit(table)
    outcome = group.append(rows(1))
    outcome.add_done_callback(lambda _: group.close())
    outcome.result(PATIENCE_SECONDS)
    group.close()
    assert ids(table) == [0, 1]


def of_large_numbers(number: int) -> pa.Table:
    return rows(1_000 + number)


def hold_no_large(*args: Any, **options: Any) -> list[AddFile]:
    """Files that no large number fits into: what shows when rows are written, and not before."""
    if any(number >= 1_000 for number in args[1]["id"].to_pylist()):
        raise SchemaError("A number is too large.")
    return WRITE(*args, **options)


@pytest.mark.parametrize("bad", [{0}, {3}, {6}, {1, 2, 5}, set(range(7))])
def test_rows_that_cannot_be_written_fail_alone(
    table: Path, gate: Gate, bad: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "write_rows_to_files", hold_no_large)
    with GroupCommit(table) as group:
        group.append(rows(100))
        assert gate.entered.wait(PATIENCE_SECONDS)
        outcomes = [
            group.append(of_large_numbers(number) if number in bad else rows(number + 1, number + 10))
            for number in range(7)
        ]
        gate.opened.set()
        for number, outcome in enumerate(outcomes):
            error = outcome.exception(PATIENCE_SECONDS)
            assert isinstance(error, SchemaError) if number in bad else error is None
    good = [number for number in range(7) if number not in bad]
    assert ids(table) == sorted([0, 100, *(n + 1 for n in good), *(n + 10 for n in good)])


def test_a_store_that_fails_while_the_bad_rows_are_looked_for_leaves_no_files(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fails_late(*args: Any, **options: Any) -> list[AddFile]:
        calls.append(1)
        # All four, the first two, the first, the second, the last two, and now the third.
        if len(calls) == 6:
            raise StorageError("503")
        return hold_no_large(*args, **options)

    with GroupCommit(table) as group:
        group.append(rows(0)).result(PATIENCE_SECONDS)
        before = sorted(table.rglob("*.parquet"))
        gate = Gate(monkeypatch)
        group.append(pa.table({"id": ["x"], "part": ["p0"]}))  # never written
        assert gate.entered.wait(PATIENCE_SECONDS)
        outcomes = [
            group.append(piece) for piece in (rows(1), of_large_numbers(2), rows(3), of_large_numbers(4))
        ]
        monkeypatch.setattr(group_commit, "write_rows_to_files", fails_late)
        gate.opened.set()
        errors = [type(outcome.exception(PATIENCE_SECONDS)) for outcome in outcomes]
    assert errors == [StorageError, SchemaError, StorageError, StorageError]
    assert sorted(table.rglob("*.parquet")) == before
