"""An open table that is behind: an append asks the log before it refuses rows that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.errors import SchemaMismatchError
from delta_core.schema.types import STRING, StructField


def rows(*ids: int, **columns: list[Any]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **columns})


def read(root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(root).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: int(row["id"]))


def ids(root: Path) -> list[int]:
    return [row["id"] for row in read(root)]


def behind(root: Path) -> DeltaTable:
    write_deltalake(root, rows(1), mode="append")
    table = DeltaTable(root)
    DeltaTable(root).alter.add_columns(StructField(name="new", data_type=STRING))
    return table


def test_rows_that_fit_the_newest_version_are_appended(tmp_path: Path) -> None:
    table = behind(tmp_path)
    committed = write_deltalake(table, rows(2, new=["x"]), mode="append")
    assert committed is not None
    assert committed.version == table.version() == 2
    assert [row["new"] for row in read(tmp_path)] == [None, "x"]


def test_a_stream_of_them_is_appended_whole(tmp_path: Path) -> None:
    table = behind(tmp_path)
    write_deltalake(table, rows(2, 3, new=["x", "y"]).to_reader(max_chunksize=1), mode="append")
    assert ids(tmp_path) == [1, 2, 3]


def test_rows_that_fit_neither_are_refused(tmp_path: Path) -> None:
    table = behind(tmp_path)
    with pytest.raises(SchemaMismatchError, match="id long, new string"):
        write_deltalake(table, rows(2, other=["x"]), mode="append")
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    assert ids(tmp_path) == [1]


def test_a_key_that_came_with_the_column_is_found(tmp_path: Path) -> None:
    table = behind(tmp_path)
    key = CommitProperties(txn=("load", 1))
    write_deltalake(tmp_path, rows(2, new=["x"]), mode="append", commit_properties=key)
    repeated = write_deltalake(table, rows(2, new=["x"]), mode="append", commit_properties=key)
    assert repeated is not None
    assert repeated.already_applied
    assert ids(tmp_path) == [1, 2]
