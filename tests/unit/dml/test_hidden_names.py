"""No way of changing a schema gives a column the name under which data files keep the ids of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import SchemaError

KEYS = ("RowId", "RowCommitVersion")


def hidden_name(table: DeltaTable, kind: str) -> str:
    return table.metadata().configuration[f"delta.rowTracking.materialized{kind}ColumnName"]


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    created = DeltaTable.create(
        tmp_path,
        pa.schema([("id", pa.int64())]),
        configuration={"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
    )
    write_deltalake(created, pa.table({"id": [1]}), mode="append")
    return created


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("mode", ["merge", "overwrite"])
def test_not_by_writing(table: DeltaTable, tmp_path: Path, kind: str, mode: str) -> None:
    name = hidden_name(table, kind)
    rows = pa.table({"id": [2], name: [7]})
    with pytest.raises(SchemaError, match=f"name {name} is reserved.*row tracking"):
        write_deltalake(table, rows, mode="append" if mode == "merge" else "overwrite", schema_mode=mode)
    assert DeltaTable(tmp_path).version() == 1
    assert len(list(tmp_path.glob("*.parquet"))) == 1


@pytest.mark.parametrize("kind", KEYS)
def test_not_by_adding_or_renaming(table: DeltaTable, kind: str) -> None:
    name = hidden_name(table, kind)
    with pytest.raises(SchemaError, match="row tracking"):
        table.alter.add_columns([pa.field(name, pa.int64())])
    with pytest.raises(SchemaError, match="row tracking"):
        table.alter.rename_column("id", name)
    assert table.version() == 1


@pytest.mark.parametrize("kind", KEYS)
def test_not_while_row_tracking_is_off(table: DeltaTable, kind: str) -> None:
    """Files may have the column already, and a later version may count on it."""
    name = hidden_name(table, kind)
    table.alter.set_properties({"delta.enableRowTracking": "false"})
    with pytest.raises(SchemaError, match="row tracking"):
        write_deltalake(table, pa.table({"id": [2], name: [7]}), mode="append", schema_mode="merge")
