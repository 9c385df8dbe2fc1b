"""Changes of columns on an open table: what they do to the schema, the protocol, the rows and the history."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import delta_core
from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.actions import SetTransaction
from delta_core.errors import ConstraintViolationError, SchemaEvolutionError
from delta_core.schema.column_changes import After, First
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import LONG, STRING, StructField, StructType


def rows_of(table: DeltaTable) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.to_pyarrow_table().to_pylist()
    return found


def schema_of(table: DeltaTable) -> StructType:
    return schema_from_json(table.metadata().schema_string)


ROWS = pa.table({"a": pa.array([1, None], pa.int64()), "s": [{"x": 1}, None]})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "table", ROWS)
    return DeltaTable(tmp_path / "table")


def test_columns_are_added_in_their_place_and_into_structs(table: DeltaTable) -> None:
    added = [StructField(name="b", data_type=LONG), StructField(name="c", data_type=STRING)]
    table.alter.add_columns(added, position=First())
    table.alter.add_columns(StructField(name="d", data_type=LONG), position=After("A"))
    table.alter.add_columns(StructField(name="y", data_type=STRING), parent="s", position=First())
    assert schema_of(table).names == ("b", "c", "a", "d", "s")
    inner = schema_of(table).find("s").data_type
    assert isinstance(inner, StructType)
    assert inner.names == ("y", "x")
    assert rows_of(table) == [
        {"b": None, "c": None, "a": 1, "d": None, "s": {"y": None, "x": 1}},
        {"b": None, "c": None, "a": None, "d": None, "s": None},
    ]
    parameters = table.history(1)[0].commit_info.operation_parameters
    assert parameters == {"columns": '[{"column":{"name":"s.y","type":"string"}}]'}


def test_moves_and_comments(table: DeltaTable) -> None:
    table.alter.move_column("s", First())
    assert schema_of(table).names == ("s", "a")
    table.alter.set_comment(["s", "x"], "a number")
    assert schema_of(table).find("s").data_type.find("x").metadata == {"comment": "a number"}
    table.alter.set_comment(["s", "x"], None)
    assert schema_of(table).find("s").data_type.find("x").metadata == {}
    with pytest.raises(SchemaEvolutionError):
        table.alter.move_column("a", After("nothing"))


def test_without_a_mapping_nothing_is_renamed_or_dropped(table: DeltaTable) -> None:
    for change in (lambda: table.alter.rename_column("a", "b"), lambda: table.alter.drop_columns("a")):
        with pytest.raises(SchemaEvolutionError, match="no column mapping"):
            change()
    assert table.version() == 0


def test_not_null_is_set_where_no_row_is_null(table: DeltaTable) -> None:
    with pytest.raises(ConstraintViolationError, match="The column a cannot be NOT NULL"):
        table.alter.set_not_null("a")
    write_deltalake(table, ROWS.slice(0, 1), mode="overwrite")
    table.alter.set_not_null("a")
    with pytest.raises(ConstraintViolationError):
        write_deltalake(table, ROWS, mode="append")
    table.alter.drop_not_null("a")
    write_deltalake(table, ROWS, mode="append")


def test_a_repeated_change_changes_nothing(table: DeltaTable) -> None:
    key = CommitProperties(txn=SetTransaction(app_id="job", version=1))
    table.alter.add_columns(StructField(name="b", data_type=LONG), commit_properties=key)
    table.alter.add_columns(StructField(name="b", data_type=LONG), commit_properties=key)
    assert table.version() == 1


def test_positions_are_public_names(tmp_path: Path) -> None:
    table = delta_core.DeltaTable.create(tmp_path, pa.schema([("id", pa.int64())]))
    table.alter.add_columns(pa.field("first", pa.string()), position=delta_core.First())
    table.alter.add_columns(pa.field("last", pa.string()), position=delta_core.After("id"))
    assert table.schema().names == ("first", "id", "last")
    assert {"First", "After"} <= set(dir(delta_core))
    assert not {"importlib", "Any", "TYPE_CHECKING", "annotations"} & set(dir(delta_core))
