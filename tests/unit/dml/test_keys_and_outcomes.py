"""Idempotency keys as callers write them, and what an outcome that nobody knows tells them to do."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core
from delta_core import CommitProperties, DeltaTable, GroupCommit, SetTransaction, write_deltalake
from delta_core.errors import CommitStateUnknownError, ConfigurationError, SchemaMismatchError
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.waiting import PATIENCE_SECONDS


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "table", rows(0))
    return tmp_path / "table"


def lose_answers(monkeypatch: pytest.MonkeyPatch, table: Path, fault: PutFault) -> FaultyStore:
    """Every commit from now on is sent, and its answer lost, whoever opens the table."""
    faulty = FaultyStore(LocalLogStore(table))
    faulty.puts = [fault] * 20

    def open_faulty(*args: object, **options: object) -> LogStore:
        return faulty  # type: ignore[return-value]

    for module in ("write", "group_commit"):
        monkeypatch.setattr(f"delta_core.dml.{module}.open_store", open_faulty)
    return faulty


def test_the_names_that_a_key_needs_are_public() -> None:
    assert {"CommitProperties", "SetTransaction", "Committed", "AlreadyApplied"} <= set(delta_core.__all__)
    assert all(getattr(delta_core, name) is not None for name in delta_core.__all__)


def test_a_pair_is_a_key_wherever_one_is_taken(table: Path) -> None:
    key = SetTransaction(app_id="load", version=3)
    assert CommitProperties(txn=("load", 3)) == CommitProperties(txn=key)
    assert CommitProperties(txn=("load", 3)).txn == key

    first = write_deltalake(table, rows(1), mode="append", txn=("load", 3))
    again = write_deltalake(
        table, rows(1), mode="append", txn=("load", 3), commit_properties=CommitProperties(txn=key)
    )
    lower = write_deltalake(table, rows(2), mode="append", txn=("load", 2))
    assert first is not None
    assert not first.already_applied
    assert again is not None
    assert again.already_applied
    assert lower is not None
    assert lower.already_applied
    with GroupCommit(table) as group:
        assert group.append(rows(1), txn=("load", 3)).result(PATIENCE_SECONDS).already_applied
        assert not group.append(rows(4), txn=("load", 4)).result(PATIENCE_SECONDS).already_applied
    assert DeltaTable(table).to_pyarrow_table().num_rows == 3


def test_properties_of_another_type_are_refused(table: Path, tmp_path: Path) -> None:
    wrong: Any = {"txn": ("load", 3)}
    opened = DeltaTable(table)
    calls: list[Any] = [
        lambda: write_deltalake(table, rows(1), mode="append", commit_properties=wrong),
        lambda: GroupCommit(table, commit_properties=wrong),
        lambda: DeltaTable.create(tmp_path / "new", rows().schema, commit_properties=wrong),
        lambda: opened.alter.set_name("x", commit_properties=wrong),
        lambda: opened.alter.add_columns([], commit_properties=wrong),
        lambda: opened.restore(0, commit_properties=wrong),
        lambda: opened.restore(0, dry_run=True, commit_properties=wrong),
        lambda: opened.vacuum(commit_properties=wrong),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="A dict was passed as commit_properties"):
            call()
    assert DeltaTable(table).version() == 0


def test_an_unknown_outcome_names_the_commit(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_answers(monkeypatch, table, PutFault.DROP_REQUEST)
    properties = CommitProperties(deadline_seconds=0.0)
    with pytest.raises(CommitStateUnknownError) as caught:
        write_deltalake(table, rows(1), mode="append", commit_properties=properties)
    error = caught.value
    assert error.version == 1
    assert error.txn_id
    assert f"Look for txnId {error.txn_id}" in error.fix
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is CommitStateUnknownError
    assert (copy.txn_id, copy.version, str(copy)) == (error.txn_id, 1, str(error))
    assert (CommitStateUnknownError("?").txn_id, CommitStateUnknownError("?").version) == ("", None)


def test_with_a_key_the_advice_is_to_run_it_again(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = lose_answers(monkeypatch, table, PutFault.DROP_REQUEST)
    properties = CommitProperties(deadline_seconds=0.0, txn=("load", 3))
    with pytest.raises(CommitStateUnknownError, match="again with the same idempotency key"):
        write_deltalake(table, rows(1), mode="append", commit_properties=properties)
    faulty.puts = []
    done = write_deltalake(table, rows(1), mode="append", commit_properties=properties)
    assert done is not None
    assert done.version == 1


def test_in_a_group_each_append_is_told_what_it_can_do(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_answers(monkeypatch, table, PutFault.DROP_REQUEST)
    with GroupCommit(table, commit_properties=CommitProperties(deadline_seconds=0.0)) as group:
        keyed = group.append(rows(1), txn=("load", 3))
        bare = group.append(rows(2))
        errors = [keyed.exception(PATIENCE_SECONDS), bare.exception(PATIENCE_SECONDS)]
    assert all(isinstance(error, CommitStateUnknownError) and error.version == 1 for error in errors)
    assert "with the same idempotency key" in str(errors[0])
    assert "Look for txnId" in str(errors[1])


def test_a_group_of_an_open_table_has_its_store(table: Path) -> None:
    opened = DeltaTable(table)
    with GroupCommit(opened) as group:
        assert group.append(rows(1)).result(PATIENCE_SECONDS).version == 1
    assert opened.version() == 0
    with pytest.raises(ConfigurationError, match="cannot be changed on an open table"):
        GroupCommit(opened, storage_options={"a": "b"})
    nothing: Any = 7
    with pytest.raises(ConfigurationError, match="A int is not a Delta table"):
        GroupCommit(nothing)
    with pytest.raises(ConfigurationError, match="A int is not a Delta table"):
        write_deltalake(nothing, rows(1))


def test_a_merge_is_advised_where_it_alone_would_do(table: Path) -> None:
    extra = rows(1).append_column("more", pa.array([1]))
    other = pa.table({"id": ["x"]})
    both = other.append_column("more", pa.array([1]))
    for data, advised in ((extra, True), (other, False), (both, False)):
        with pytest.raises(SchemaMismatchError) as caught:
            write_deltalake(table, data, mode="append")
        assert ("schema_mode='merge'" in caught.value.fix) is advised
        assert ("Cast" in caught.value.fix) is not advised
    with GroupCommit(table) as group:
        error = group.append(extra).exception(PATIENCE_SECONDS)
    assert isinstance(error, SchemaMismatchError)
    assert "schema_mode" not in error.fix
    assert "alter.add_columns" in error.fix


def test_a_merge_does_not_bring_a_column_that_must_not_be_null(tmp_path: Path) -> None:
    needed = pa.field("needed", pa.int64(), nullable=False)
    DeltaTable.create(tmp_path, pa.schema([pa.field("id", pa.int64()), needed]))
    with pytest.raises(SchemaMismatchError, match="needed is missing") as caught:
        write_deltalake(tmp_path, rows(1).append_column("more", pa.array([1])), mode="append")
    assert "schema_mode" not in caught.value.fix
