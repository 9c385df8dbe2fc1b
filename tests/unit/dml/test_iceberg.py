"""Tables that stay convertible to Iceberg: each way of writing keeps the rules, others are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.errors import (
    IcebergCompatibilityError,
    InvalidTablePropertyError,
    SchemaEvolutionError,
)
from delta_core.schema.types import DOUBLE, LONG, VOID, ArrayType, DecimalType, StructField
from delta_core.table_features.upgrade import supported_features
from delta_core.transaction.transaction import Transaction
from tests.state_machine.reading import deltalake_rows
from tests.support.log_builder import add
from tests.support.rows import canonical_rows

V1, V2 = "delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"
DELETION_VECTORS = "delta.enableDeletionVectors"
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "p": ["a", "b", None, "a"],
        "n": pa.array([10, 20, 30, 40], pa.int32()),
        "at": pa.array([0, 1, None, 3], pa.timestamp("us", "UTC")),
    }
)
NESTED = ROWS.append_column("items", pa.array([[1], None, [2, 3], []], pa.list_(pa.int64())))


def create(path: Path, *keys: str, rows: pa.Table = ROWS, by: str = "p", **more: str) -> DeltaTable:
    properties = {f"delta.{key.replace('__', '.')}": value for key, value in more.items()}
    configuration = {**dict.fromkeys(keys, "true"), **properties}
    write_deltalake(path, rows, partition_by=[by] if by else [], configuration=configuration)
    return DeltaTable(path)


def live(table: DeltaTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.snapshot.files.to_table().to_pylist()
    return found


def check_files(table: DeltaTable) -> None:
    """Every live file says how many rows it has, and has the partition columns last, with their values."""
    fields = {
        field.name: field.metadata.get("delta.columnMapping.physicalName", field.name)
        for field in table.schema()
    }
    physical = [fields[name] for name in table.metadata().partition_columns]
    for file in live(table):
        found = pq.ParquetFile(Path(str(table.table_uri).removeprefix("file://")) / file["path"])
        assert json.loads(file["stats"])["numRecords"] == found.metadata.num_rows
        assert file["deletion_vector"] is None
        assert found.schema_arrow.names[-len(physical) :] == physical
        assert set(found.schema_arrow.names) == set(fields.values())
        leaves = [found.metadata.schema.column(index) for index in range(len(found.metadata.schema))]
        assert "INT96" not in {leaf.physical_type for leaf in leaves}
        for partition in physical:
            (value,) = set(found.read([partition]).column(0).to_pylist())
            assert (None if value is None else str(value)) == dict(file["partition_values"])[partition]
            assert partition not in json.loads(file["stats"])["nullCount"]


def same_rows(path: Path) -> list[str]:
    """The rows, which deltalake reads as we do."""
    found = canonical_rows(DeltaTable(path).to_pyarrow_table())
    assert found == deltalake_rows(path)
    return found


WAYS: dict[str, Callable[[DeltaTable], Any]] = {
    "append": lambda table: write_deltalake(table, ROWS, mode="append"),
    "overwrite": lambda table: write_deltalake(table, ROWS.slice(1), mode="overwrite"),
    "replaceWhere": lambda table: write_deltalake(
        table, ROWS.slice(0, 1), mode="overwrite", predicate="p = 'a'"
    ),
    "dynamic": lambda table: write_deltalake(
        table, ROWS.slice(0, 2), mode="overwrite", partition_overwrite_mode="dynamic"
    ),
    "delete": lambda table: table.delete("id = 1"),
    "delete of a partition": lambda table: table.delete("p = 'a'"),
    "update": lambda table: table.update({"n": "n + 1"}, predicate="id IN (1, 3)"),
    "update of a partition column": lambda table: table.update({"p": "'c'"}, predicate="id = 4"),
    "compaction": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["id"]),
    "new column": lambda table: write_deltalake(
        table, ROWS.append_column("more", pa.array([1.5] * 4)), mode="append", schema_mode="merge"
    ),
    "restore": lambda table: table.restore(0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", [V1, V2, "delta.enableMaterializePartitionColumnsFeature"])
def test_files_are_as_they_must_be_however_they_are_written(tmp_path: Path, key: str, way: str) -> None:
    table = create(tmp_path, key)
    write_deltalake(table, ROWS, mode="append")
    WAYS[way](table)
    assert table.version() == 2
    if way != "new column":
        check_files(table)
    assert same_rows(tmp_path)


def test_the_rows_that_a_reader_sees_come_from_the_log(tmp_path: Path) -> None:
    table = create(tmp_path, V2)
    (partition,) = live(table)[0]["partition_values"][0][:1]
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace(f'"{partition}":"b"', f'"{partition}":"elsewhere"'))
    found = dict(
        zip(*DeltaTable(tmp_path).to_pyarrow_table().select(["id", "p"]).to_pydict().values(), strict=True)
    )
    assert found == {1: "a", 2: "elsewhere", 3: None, 4: "a"}


def test_arrays_and_maps_have_ids_of_their_own(tmp_path: Path) -> None:
    table = create(tmp_path, V2, rows=NESTED)
    field = table.schema().find("items")
    assert field is not None
    ids = field.metadata["delta.columnMapping.nested.ids"]
    name = field.metadata["delta.columnMapping.physicalName"]
    assert ids == {f"{name}.element": 6}
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "6"
    table.alter.add_columns(StructField(name="more", data_type=ArrayType(element_type=LONG)))
    added = table.schema().find("more")
    assert added is not None
    assert list(added.metadata["delta.columnMapping.nested.ids"].values()) == [8]
    for file in live(table):
        schema = pq.read_schema(tmp_path / file["path"])
        assert schema.field(name).type.value_field.metadata[b"PARQUET:field_id"] == b"6"


@pytest.mark.parametrize(
    ("key", "more", "rows", "text"),
    [
        (V1, {}, NESTED, "items is of type array"),
        (V1, {DELETION_VECTORS: "true"}, ROWS, "lists deletionVectors"),
        (V1, {"delta.columnMapping.mode": "none"}, ROWS, "neither name nor id"),
        (V1, {V2: "true"}, ROWS, "icebergCompatV1 is also active"),
        (V2, {DELETION_VECTORS: "true"}, ROWS, "enableDeletionVectors is true"),
    ],
)
def test_a_table_that_breaks_a_rule_is_not_created(
    tmp_path: Path, key: str, more: dict[str, str], rows: pa.Table, text: str
) -> None:
    with pytest.raises(IcebergCompatibilityError) as caught:
        write_deltalake(tmp_path / "t", rows, configuration={key: "true", **more})
    assert text in caught.value.cause
    assert not list(tmp_path.rglob("*.parquet"))
    with pytest.raises(IcebergCompatibilityError):
        DeltaTable.create(tmp_path / "t", rows.schema, configuration={key: "true", **more})
    assert not DeltaTable.is_deltatable(tmp_path / "t")


CHANGES: dict[str, Callable[[DeltaTable], Any]] = {
    "other partitions": lambda table: write_deltalake(
        table, ROWS, mode="overwrite", schema_mode="overwrite", partition_by=["n"]
    ),
    "no partitions": lambda table: write_deltalake(
        table, ROWS, mode="overwrite", schema_mode="overwrite", partition_by=[]
    ),
    "void column": lambda table: table.alter.add_columns(StructField(name="v", data_type=VOID)),
    "vectors": lambda table: table.alter.set_properties({DELETION_VECTORS: "true"}),
    "both": lambda table: table.alter.set_properties({V1: "true", V2: "true"}),
    "a file without a count": lambda table: (
        Transaction.begin(table.snapshot, operation="WRITE").add(add("x.parquet", stats="{}")).commit()
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("key", [V1, V2])
def test_what_would_break_a_rule_is_refused_and_leaves_no_file(tmp_path: Path, key: str, change: str) -> None:
    table = create(tmp_path, key)
    before = sorted(tmp_path.rglob("*.*"))
    with pytest.raises(IcebergCompatibilityError):
        CHANGES[change](table)
    assert sorted(tmp_path.rglob("*.*")) == before


def test_arrays_stay_out_of_the_first_version(tmp_path: Path) -> None:
    table = create(tmp_path, V1)
    with pytest.raises(IcebergCompatibilityError, match="icebergCompatV1"):
        write_deltalake(table, NESTED, mode="append", schema_mode="merge")
    assert table.version() == 0


@pytest.mark.parametrize("key", [V1, V2])
def test_a_partition_column_may_be_renamed_and_get_another_type(tmp_path: Path, key: str) -> None:
    table = create(tmp_path, key, by="n")
    table.alter.rename_column("n", "number")

    wide = ROWS.set_column(2, "number", ROWS.column("n").cast(pa.int64()))
    write_deltalake(table, wide, mode="overwrite", schema_mode="overwrite", partition_by=["number"])
    check_files(table)


@pytest.mark.parametrize("key", [V1, V2])
def test_types_change_only_as_far_as_iceberg_knows_it(tmp_path: Path, key: str) -> None:
    table = create(tmp_path, key, enableTypeWidening="true")
    table.alter.change_type("n", LONG)

    for kind in (DOUBLE, DecimalType(20, 0)):
        with pytest.raises(SchemaEvolutionError):
            table.alter.change_type("n", kind)
    write_deltalake(table, ROWS, mode="append")
    assert table.to_pyarrow_table().column("n").type == pa.int64()


@pytest.mark.parametrize("key", [V1, V2])
def test_changes_of_types_from_before_must_be_icebergs_too(tmp_path: Path, key: str) -> None:
    table = create(tmp_path, by="", enableTypeWidening="true", columnMapping__mode="name")
    table.alter.change_type("n", DOUBLE)
    with pytest.raises(IcebergCompatibilityError, match=key.removeprefix("delta.enableI")) as caught:
        table.alter.set_properties({key: "true"})
    assert "changed from integer to double" in caught.value.cause


def test_the_mapping_stays_as_long_as_it_is_needed(tmp_path: Path) -> None:
    table = create(tmp_path, V1)
    for mode in ("none", "id"):
        with pytest.raises(InvalidTablePropertyError):
            table.alter.set_properties({"delta.columnMapping.mode": mode})


def test_by_id_works_as_well(tmp_path: Path) -> None:
    table = create(tmp_path, V2, rows=NESTED, columnMapping__mode="id")
    write_deltalake(table, NESTED, mode="append")
    table.delete("id = 1")
    check_files(table)


@pytest.mark.parametrize(("key", "other"), [(V1, V2), (V2, V1)])
def test_off_again_and_dropped(tmp_path: Path, key: str, other: str) -> None:
    name = key.removeprefix("delta.enable")
    feature = name[0].lower() + name[1:]
    table = create(tmp_path, key)
    table.alter.set_properties({key: "false"})
    write_deltalake(table, ROWS, mode="append")
    names = {len(pq.read_schema(tmp_path / file["path"])) for file in live(table)}
    assert names == {3, 4}
    with pytest.raises(IcebergCompatibilityError, match="existing files do not comply") as caught:
        table.alter.set_properties({key: "true"})
    assert "lacks the partition column p" in caught.value.cause
    table.alter.drop_feature(feature)

    assert feature not in supported_features(table.protocol())
    assert key not in table.metadata().configuration
    table.alter.set_properties({DELETION_VECTORS: "true"})
    table.delete("id = 1")
    assert same_rows(tmp_path)
    assert other not in table.metadata().configuration


def test_one_compatibility_may_follow_the_other(tmp_path: Path) -> None:
    table = create(tmp_path, V1)
    table.alter.set_properties({V1: "false", V2: "true"})
    write_deltalake(table, ROWS, mode="append")
    check_files(table)


def test_a_restore_goes_back_over_turning_it_off(tmp_path: Path) -> None:
    table = create(tmp_path, V1)
    table.alter.set_properties({V1: "false"})
    write_deltalake(table, ROWS, mode="append")
    table.restore(0)
    assert table.metadata().configuration[V1] == "true"
    check_files(table)
    table.alter.set_properties({V1: "false"})
    table.alter.add_feature("deletionVectors")
    with pytest.raises(IcebergCompatibilityError, match="deletionVectors"):
        table.restore(0)


@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_is_as_its_source(tmp_path: Path, shallow: bool) -> None:
    source = create(tmp_path / "source", V2, rows=NESTED)
    clone_table(source.table_uri, tmp_path / "clone", shallow=shallow)
    clone = DeltaTable(tmp_path / "clone")
    assert clone.metadata().configuration[V2] == "true"
    write_deltalake(clone, NESTED, mode="append")
    assert len(deltalake_rows(tmp_path / "clone") or ()) == 8
    if not shallow:
        check_files(clone)


def test_a_change_data_feed_of_such_a_table(tmp_path: Path) -> None:
    table = create(tmp_path, V1, enableChangeDataFeed="true")
    table.update({"n": "n + 1"}, predicate="id = 1")
    table.delete("id = 4")
    check_files(table)
    found = DeltaTable(tmp_path).load_cdf(1).read_all().select(["id", "p", "n", "_change_type"]).to_pylist()
    assert sorted((row["id"], row["p"], row["n"], row["_change_type"]) for row in found) == [
        (1, "a", 10, "update_preimage"),
        (1, "a", 11, "update_postimage"),
        (4, "a", 40, "delete"),
    ]


def test_row_ids_lie_behind_the_partition_columns(tmp_path: Path) -> None:
    table = create(tmp_path, V2, enableRowTracking="true")
    table.update({"n": "n + 1"}, predicate="id = 1")
    (new,) = [f for f in live(table) if len(pq.read_schema(tmp_path / f["path"])) == 6]
    names = pq.read_schema(tmp_path / new["path"]).names
    field = table.schema().find("p")
    assert field is not None
    assert names.index(field.metadata["delta.columnMapping.physicalName"]) == 3


def test_a_live_file_without_a_count_stands_in_the_way(tmp_path: Path) -> None:
    table = create(tmp_path, by="", columnMapping__mode="name")
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = "{}"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(IcebergCompatibilityError, match="icebergCompatV2") as caught:
        DeltaTable(tmp_path).alter.set_properties({V2: "true"})
    assert "numRecords" in caught.value.cause
    assert table.version() == 0


def test_statistics_that_are_switched_off_still_count_rows(tmp_path: Path) -> None:
    table = create(tmp_path, V1, dataSkippingNumIndexedCols="0")
    write_deltalake(table, ROWS, mode="append")
    assert sum(json.loads(file["stats"])["numRecords"] for file in live(table)) == 8


@pytest.mark.parametrize("key", [V1, V2])
def test_files_whose_statistics_a_checkpoint_left_out_come_back_with_their_counts(
    tmp_path: Path, key: str
) -> None:
    table = create(tmp_path / "t", key, checkpoint__writeStatsAsJson="false")
    table.create_checkpoint()
    table = DeltaTable(tmp_path / "t")
    version, rows = table.version(), table.to_pyarrow_table().num_rows
    assert not any(add["stats"] for add in live(table)), "else there is nothing to find out"
    clone_table(tmp_path / "t", tmp_path / "shallow", shallow=True)
    clone_table(tmp_path / "t", tmp_path / "deep")
    table.delete()
    table.restore(version)
    for place in ("t", "shallow", "deep"):
        found = DeltaTable(tmp_path / place, allowed_roots=[tmp_path / "t"])
        assert found.to_pyarrow_table().num_rows == rows
        assert sum(json.loads(add["stats"])["numRecords"] for add in live(found)) == rows
