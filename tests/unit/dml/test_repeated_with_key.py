"""A change that is called again with its key, since nobody saw it end, is done and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import SetTransaction
from delta_core.errors import SchemaEvolutionError, TableExistsError
from delta_core.schema.types import STRING, StructField
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.commit_result import Committed

KEY = SetTransaction(app_id="migration", version=3)
PROPERTIES = CommitProperties(txn=KEY)
ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})

CHANGES: dict[str, Callable[[DeltaTable], Committed]] = {
    "add columns": lambda table: table.alter.add_columns(
        StructField(name="note", data_type=STRING), commit_properties=PROPERTIES
    ),
    "drop not null": lambda table: table.alter.drop_not_null("id", commit_properties=PROPERTIES),
    "set properties": lambda table: table.alter.set_properties({"a": "b"}, commit_properties=PROPERTIES),
    "unset properties": lambda table: table.alter.unset_properties(["owner"], commit_properties=PROPERTIES),
    "name": lambda table: table.alter.set_name("orders", commit_properties=PROPERTIES),
    "describe": lambda table: table.alter.set_description("what it is", commit_properties=PROPERTIES),
    "add a constraint": lambda table: table.alter.add_constraint(
        {"small": "id < 9"}, commit_properties=PROPERTIES
    ),
    "drop a constraint": lambda table: table.alter.drop_constraint("positive", commit_properties=PROPERTIES),
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    table = DeltaTable.create(
        tmp_path / "t",
        pa.schema([pa.field("id", pa.int64(), nullable=False)]),
        configuration={"owner": "a team"},
    )
    table.alter.add_constraint({"positive": "id > 0"})
    write_deltalake(table, ROWS.cast(pa.schema([pa.field("id", pa.int64(), nullable=False)])), mode="append")
    return table.table_uri


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_definition_is_changed_once(change: Callable[[DeltaTable], Committed], uri: str) -> None:
    first = change(DeltaTable(uri))
    again = change(DeltaTable(uri))

    assert not first.already_applied
    assert again.already_applied
    assert DeltaTable(uri).version() == first.version


def test_without_its_key_the_change_is_refused(uri: str) -> None:
    CHANGES["add columns"](DeltaTable(uri))
    with pytest.raises(SchemaEvolutionError):
        DeltaTable(uri).alter.add_columns(
            StructField(name="note", data_type=STRING),
            commit_properties=replace(PROPERTIES, txn=replace(KEY, version=4)),
        )


def test_a_table_is_created_once(tmp_path: Path) -> None:
    first = DeltaTable.create(tmp_path / "t", ROWS.schema, commit_properties=PROPERTIES)
    again = DeltaTable.create(tmp_path / "t", ROWS.schema, commit_properties=PROPERTIES)

    assert first.version() == again.version() == 0
    with pytest.raises(TableExistsError):
        DeltaTable.create(tmp_path / "t", ROWS.schema)


def test_the_first_write_is_made_once(tmp_path: Path) -> None:
    first = write_deltalake(tmp_path / "t", ROWS, txn=KEY)
    again = write_deltalake(tmp_path / "t", ROWS, txn=KEY)

    assert first is not None
    assert not first.already_applied
    assert again is not None
    assert again.already_applied
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == ROWS.num_rows
    with pytest.raises(TableExistsError):
        write_deltalake(tmp_path / "t", ROWS, txn=replace(KEY, version=4))
