"""Changes of the definition: columns, properties, constraints, creation."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.actions import Protocol
from delta_core.dml.write import write_deltalake
from delta_core.errors import (
    ConfigurationError,
    ConstraintViolationError,
    ExpressionError,
    InvalidTablePropertyError,
    MetadataChangedError,
    SchemaEvolutionError,
    SchemaMismatchError,
    TableExistsError,
    UnsupportedTableFeatureError,
)
from delta_core.schema.types import LONG, STRING, StructField, StructType
from delta_core.table import DeltaTable

SCHEMA = StructType(
    (
        StructField(name="id", data_type=LONG, nullable=False),
        StructField(name="p", data_type=STRING),
    )
)


def rows(*ids: int | None) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": ["x"] * len(ids)})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    return DeltaTable.create(tmp_path, SCHEMA, partition_by=["p"], name="t", description="about")


def test_created_table_is_empty_and_recorded(table: DeltaTable) -> None:
    assert table.version() == 0
    assert table.to_pyarrow_table().num_rows == 0
    entry = table.history()[0]
    assert entry.commit_info.operation == "CREATE TABLE"
    assert entry.commit_info.operation_parameters == {
        "partitionBy": '["p"]',
        "properties": "{}",
        "description": "about",
    }
    with pytest.raises(TableExistsError):
        DeltaTable.create(table.table_uri, SCHEMA)


def test_column_is_added_and_null_in_old_rows(table: DeltaTable) -> None:
    write_deltalake(table, rows(1), mode="append")
    committed = table.alter.add_columns(StructField(name="note", data_type=STRING))
    assert (committed.version, table.version()) == (2, 2)
    assert table.to_pyarrow_table().to_pylist() == [{"id": 1, "p": "x", "note": None}]
    with pytest.raises(SchemaEvolutionError, match="NOTE"):
        table.alter.add_columns([StructField(name="NOTE", data_type=STRING)])
    assert table.history(1)[0].commit_info.operation == "ADD COLUMNS"


def test_column_may_become_nullable(table: DeltaTable) -> None:
    with pytest.raises((ConstraintViolationError, SchemaMismatchError)):
        write_deltalake(table, rows(None), mode="append")
    table.alter.drop_not_null("id")
    write_deltalake(table, rows(None), mode="append")
    assert table.to_pyarrow_table().column("id").to_pylist() == [None]


def test_properties_are_set_and_unset(table: DeltaTable) -> None:
    table.alter.set_properties({"delta.checkpointInterval": "5", "owner": "ada"})
    assert table.snapshot.properties.checkpoint_interval == 5
    table.alter.unset_properties(["delta.checkpointInterval"])
    assert dict(table.metadata().configuration) == {"owner": "ada"}
    with pytest.raises(InvalidTablePropertyError):
        table.alter.set_properties({"delta.appendOnly": "perhaps"})
    with pytest.raises(UnsupportedTableFeatureError, match="clustering"):
        table.alter.set_properties({"delta.feature.clustering": "supported"})
    with pytest.raises(InvalidTablePropertyError, match="is not a mapping of table properties"):
        table.alter.set_properties("delta.appendOnly")  # type: ignore[arg-type]
    assert table.version() == 2


def test_name_and_description(table: DeltaTable) -> None:
    table.alter.set_name("other")
    assert (table.metadata().name, table.metadata().description) == ("other", "about")
    table.alter.set_description("all about")
    assert (table.metadata().name, table.metadata().description) == ("other", "all about")


class TestConstraints:
    def test_constraint_guards_later_rows(self, table: DeltaTable) -> None:
        write_deltalake(table, rows(1), mode="append")
        table.alter.add_constraint({"positive": "id > 0"})
        assert table.protocol() == Protocol(min_reader_version=1, min_writer_version=3)
        with pytest.raises(ConstraintViolationError, match="positive"):
            write_deltalake(table, rows(2, -1), mode="append")
        write_deltalake(table, rows(2), mode="append")
        table.alter.drop_constraint("positive")
        write_deltalake(table, rows(-1), mode="append")
        assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [-1, 1, 2]

    def test_rows_that_exist_are_checked_first(self, table: DeltaTable) -> None:
        write_deltalake(table, rows(1, -1), mode="append")
        with pytest.raises(ConstraintViolationError, match="positive"):
            table.alter.add_constraint({"positive": "id > 0"})
        assert table.version() == 1

    @pytest.mark.parametrize("condition", ["NULL", "CASE WHEN id > 5 THEN NULL END"])
    def test_a_condition_that_is_always_null_holds_for_no_row(
        self, table: DeltaTable, condition: str
    ) -> None:
        table.alter.add_constraint({"never": condition})
        with pytest.raises(ConstraintViolationError, match="never"):
            write_deltalake(table, rows(1), mode="append")
        table.alter.drop_constraint("never")
        write_deltalake(table, rows(1), mode="append")
        with pytest.raises(ConstraintViolationError, match="Existing rows violate the constraint"):
            table.alter.add_constraint({"never": condition})

    @pytest.mark.parametrize(
        ("condition", "cause"),
        [("nope > 1", "nope does not exist"), ("id", "not a condition"), ("id >", "not valid Spark SQL")],
    )
    def test_a_table_is_not_created_with_a_condition_that_no_row_can_be_held_against(
        self, tmp_path: Path, condition: str, cause: str
    ) -> None:
        fields = [StructField(name="id", data_type=LONG)]
        with pytest.raises(ExpressionError, match=cause):
            DeltaTable.create(tmp_path / "new", fields, configuration={"delta.constraints.c": condition})
        assert not (tmp_path / "new").exists()

    def test_names_are_unique_and_not_properties(self, table: DeltaTable) -> None:
        table.alter.add_constraint({"c": "id > 0"})
        with pytest.raises(ConfigurationError, match="'C'"):
            table.alter.add_constraint({"C": "id > 1"})
        with pytest.raises(ConfigurationError, match="add_constraint"):
            table.alter.set_properties({"delta.constraints.d": "id > 0"})
        with pytest.raises(ConfigurationError, match="nope"):
            table.alter.drop_constraint("nope")

    def test_rows_appended_meanwhile_stop_it(self, table: DeltaTable) -> None:
        """The check has not seen them."""
        other = DeltaTable(table.table_uri)
        other.alter.set_properties({"delta.isolationLevel": "Serializable"})
        table.update_incremental()
        original = table.update_incremental
        table.adopt_newest = lambda: None  # type: ignore[method-assign]
        write_deltalake(other, rows(-1), mode="append")
        with pytest.raises(Exception, match="version 2"):
            table.alter.add_constraint({"positive": "id > 0"})
        original()
        assert table.version() == 2


def test_two_changes_at_once_conflict(table: DeltaTable) -> None:
    table.adopt_newest = lambda: None  # type: ignore[method-assign]
    DeltaTable(table.table_uri).alter.set_properties({"a": "1"})
    with pytest.raises(MetadataChangedError):
        table.alter.set_properties({"b": "2"})
