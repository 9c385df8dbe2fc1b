"""SYNC IDENTITY: where an identity column goes on, and what the sync does to writers beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    ConstraintViolationError,
)
from delta_core.schema.types import LONG, STRING, StructField, StructType
from delta_core.table_features.identity import define_identity, identity_columns


def make(path: Path, *, start: int = 1, step: int = 1, **configuration: str) -> DeltaTable:
    column = define_identity(
        StructField(name="Id", data_type=LONG), start=start, step=step, allow_explicit_insert=True
    )
    schema = StructType((column, StructField(name="t", data_type=STRING)))
    return DeltaTable.create(path, schema, configuration=configuration)


def append(table: DeltaTable, *ids: int | None) -> None:
    write_deltalake(table, pa.table({"Id": pa.array(ids, pa.int64()), "t": ["x"] * len(ids)}), mode="append")


def generate(table: DeltaTable, rows: int) -> list[int]:
    before = set(table.to_pyarrow_table()["Id"].to_pylist())
    write_deltalake(table, pa.table({"t": ["new"] * rows}), mode="append")
    return sorted(set(table.to_pyarrow_table()["Id"].to_pylist()) - before)


def mark(table: DeltaTable) -> int | None:
    return identity_columns(table.snapshot.schema)[0].high_water_mark


@pytest.mark.parametrize(
    ("start", "step", "given", "expected", "following"),
    [
        (1, 1, [7, 3], 7, [8, 9]),
        (1, 10, [5, 12], 21, [31, 41]),
        (0, -1, [-4, 8], -4, [-6, -5]),
        (-5, -3, [-9], -11, [-17, -14]),
        (100, 1, [5, 99], None, [100, 101]),
        (-100, -1, [5, -99], None, [-101, -100]),
        (1, 1, [], None, [1, 2]),
    ],
)
def test_values_go_on_behind_those_that_are_there(
    tmp_path: Path, start: int, step: int, given: list[int], expected: int | None, following: list[int]
) -> None:
    table = make(tmp_path / "t", start=start, step=step)
    if given:
        append(table, *given)
    assert mark(table) is None
    version = table.version()
    committed = table.alter.sync_identity("iD")
    assert mark(table) == expected
    assert (committed.version, committed.attempts) == ((version, 0) if expected is None else (version + 1, 1))
    assert generate(table, 2) == following


def test_the_mark_never_goes_back_and_all_files_count(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    append(table, 40)
    append(table, 3)
    table.alter.sync_identity("id")
    assert mark(table) == 40
    table.delete("Id = 40")
    assert table.alter.sync_identity("id").attempts == 0
    assert mark(table) == 40
    assert generate(table, 1) == [41]
    entry = next(e for e in table.history() if e.commit_info.operation == "CHANGE COLUMN").commit_info
    assert entry.operation_parameters == {"column": "Id", "syncIdentity": "true", "highWaterMark": "40"}


def test_rows_that_a_vector_names_do_not_count_and_null_is_no_value(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **{"delta.enableDeletionVectors": "true"})
    append(table, 5, 900)
    table.delete("Id = 900")
    table.alter.sync_identity("Id")
    assert mark(table) == 5


def test_mapped_columns_are_found(tmp_path: Path) -> None:
    table = make(tmp_path / "t", **{"delta.columnMapping.mode": "name"})
    append(table, 12)
    table.alter.rename_column("Id", "key")
    table.alter.sync_identity("KEY")
    assert mark(table) == 12


def test_rows_that_are_added_meanwhile_conflict(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    append(table, 5)
    behind = DeltaTable(tmp_path / "t")
    behind.adopt_newest = lambda: None  # type: ignore[method-assign]
    append(table, 80)
    with pytest.raises(ConcurrentModificationError):
        behind.alter.sync_identity("Id")
    assert mark(DeltaTable(tmp_path / "t")) is None
    table.alter.sync_identity("Id")
    assert mark(table) == 80


def test_a_repeated_call_with_a_key_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    append(table, 5)
    key = CommitProperties(txn=("sync", 1))
    assert not table.alter.sync_identity("Id", commit_properties=key).already_applied
    append(table, 9)
    assert table.alter.sync_identity("Id", commit_properties=key).already_applied
    assert mark(table) == 5


@pytest.mark.parametrize("column", ["t", "nothing"])
def test_other_columns_are_refused(tmp_path: Path, column: str) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(ConfigurationError, match=column):
        table.alter.sync_identity(column)
    assert table.version() == 0


def test_no_value_is_left(tmp_path: Path) -> None:
    table = make(tmp_path / "t", step=10)
    append(table, 2**63 - 1)
    with pytest.raises(ConstraintViolationError, match="cannot be synchronized with"):
        table.alter.sync_identity("Id")
    assert PeerTable(str(tmp_path / "t")).version() == 1
