"""REPLACE TABLE: another definition and no rows, in one commit that loses no history."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, define_column, write_deltalake
from delta_core.dml.definition.replace import replace_table
from delta_core.errors import ConcurrentModificationError, InvalidTableError
from delta_core.schema.schema_arguments import coerce_schema

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
NEW = coerce_schema([define_column("day", pa.date32(), nullable=False), define_column("n", pa.int64())])


def filled(folder: Path, **properties: str) -> DeltaTable:
    write_deltalake(folder, ROWS, configuration={"delta.appendOnly": "false", **properties})
    return DeltaTable(folder)


def test_the_definition_changes_and_older_versions_stay(tmp_path: Path) -> None:
    table = filled(tmp_path, **{"delta.enableChangeDataFeed": "true"})
    before = table.metadata()
    committed = replace_table(
        table.snapshot, schema=NEW, partition_by=["day"], configuration={"mine": "1"}, description="new"
    )
    after = DeltaTable(tmp_path)
    assert after.version() == committed.version == 1
    assert after.to_pyarrow_table().num_rows == 0
    assert list(after.schema().names) == ["day", "n"]
    assert not after.schema().fields[0].nullable
    assert after.metadata().configuration == {"mine": "1"}
    assert (after.metadata().id, after.metadata().partition_columns) == (before.id, ("day",))
    assert after.metadata().description == "new"
    assert DeltaTable(tmp_path, 0).to_pyarrow_table().num_rows == 3
    last = after.history(1)[0].commit_info
    assert last.operation == "REPLACE TABLE"
    assert last.operation_metrics["numRemovedFiles"] in (1, "1")
    after.restore(0)
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 3


def test_times_and_protocol_are_kept_and_clustering_ends(tmp_path: Path) -> None:
    properties = {"delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true"}
    schema = coerce_schema(ROWS.schema)
    table = DeltaTable.create(tmp_path, schema, cluster_by=["id"], configuration=properties)
    replace_table(table.snapshot, schema=NEW, or_create=True)
    after = DeltaTable(tmp_path)
    assert after.metadata().configuration == {"delta.enableInCommitTimestamps": "true"}
    assert after.protocol() == table.protocol()
    assert after.detail()["clustering_columns"] == []
    assert after.history(1)[0].commit_info.operation == "CREATE OR REPLACE TABLE"
    replace_table(after.snapshot, schema=NEW, cluster_by=["n"])
    assert DeltaTable(tmp_path).detail()["clustering_columns"] == ["n"]


def test_rows_that_another_writer_adds_meanwhile_are_a_conflict(tmp_path: Path) -> None:
    table = filled(tmp_path)
    write_deltalake(tmp_path, ROWS, mode="append")
    with pytest.raises(ConcurrentModificationError):
        replace_table(table.snapshot, schema=NEW)
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 6


def test_an_append_only_table_is_not_replaced(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS, configuration={"delta.appendOnly": "true"})
    with pytest.raises(InvalidTableError, match="append-only"):
        replace_table(DeltaTable(tmp_path).snapshot, schema=NEW)
    assert DeltaTable(tmp_path).version() == 0
