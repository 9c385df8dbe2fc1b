"""A table names a format that others keep metadata in only where it can be converted to it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.errors import FeatureRemovalError, InvalidTablePropertyError

KEY = "delta.universalFormat.enabledFormats"
V2 = {"delta.enableIcebergCompatV2": "true"}
ROWS = pa.table({"id": pa.array([1], pa.int64())})


def test_there_are_two_formats(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    with pytest.raises(InvalidTablePropertyError, match=KEY) as caught:
        DeltaTable(tmp_path).alter.set_properties({KEY: "hudi,orc"})
    assert caught.value.cause == "The format orc does not exist."


def test_iceberg_needs_a_table_that_stays_convertible(tmp_path: Path) -> None:
    with pytest.raises(InvalidTablePropertyError, match="iceberg"):
        write_deltalake(tmp_path / "t", ROWS, configuration={KEY: "iceberg"})
    assert not DeltaTable.is_deltatable(tmp_path / "t")
    write_deltalake(tmp_path / "t", ROWS)
    with pytest.raises(InvalidTablePropertyError, match="iceberg"):
        DeltaTable(tmp_path / "t").alter.set_properties({KEY: "iceberg"})
    assert DeltaTable(tmp_path / "t").version() == 0
    (tmp_path / "files").mkdir()
    pq.write_table(ROWS, tmp_path / "files" / "a.parquet")
    with pytest.raises(InvalidTablePropertyError, match="iceberg"):
        convert_to_deltalake(tmp_path / "files", configuration={KEY: "iceberg"})


def test_the_compatibility_is_not_taken_from_under_it(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS, configuration={**V2, KEY: "iceberg"})
    table = DeltaTable(tmp_path)
    for change in (
        lambda: table.alter.set_properties({"delta.enableIcebergCompatV2": "false"}),
        lambda: table.alter.unset_properties(["delta.enableIcebergCompatV2"]),
    ):
        with pytest.raises(InvalidTablePropertyError, match="iceberg"):
            change()
    with pytest.raises(FeatureRemovalError, match=KEY):
        table.alter.drop_feature("icebergCompatV2")
    table.alter.unset_properties([KEY])
    table.alter.drop_feature("icebergCompatV2")
    assert "icebergCompatV2" not in (table.protocol().writer_features or ())


def test_hudi_knows_neither_vectors_nor_every_type(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS, configuration={KEY: "hudi"})
    table = DeltaTable(tmp_path / "t")
    with pytest.raises(InvalidTablePropertyError, match="hudi") as caught:
        table.alter.set_properties({"delta.enableDeletionVectors": "true"})
    assert caught.value.cause == "Hudi does not support deletion vectors."
    with pytest.raises(InvalidTablePropertyError, match="hudi"):
        table.alter.add_columns(pa.field("small", pa.list_(pa.int16())))
    table.alter.add_columns(pa.field("more", pa.int32()))
    with pytest.raises(InvalidTablePropertyError, match="hudi"):
        DeltaTable.create(
            tmp_path / "c", pa.schema([("at", pa.timestamp("us"))]), configuration={KEY: "hudi"}
        )


def test_what_was_wrong_already_stands_in_no_other_changes_way(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"][KEY] = "iceberg"
    log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    table = DeltaTable(tmp_path)
    table.alter.set_description("trips")
    table.alter.set_properties({"owner": "ann"})
    table.alter.unset_properties([KEY])
    assert table.metadata().configuration == {"owner": "ann"}
