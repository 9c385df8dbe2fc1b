"""Tables with variants: each way of writing keeps the values, new columns bring the feature along."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.errors import (
    ConfigurationError,
    ConstraintViolationError,
    ExpressionError,
    FeatureRemovalError,
    SchemaError,
    SchemaEvolutionError,
    SchemaMismatchError,
)
from delta_core.schema.arrow import variant_field
from delta_core.schema.types import LONG, VARIANT, ArrayType, MapType, StructField, StructType
from delta_core.table_features.upgrade import supported_features
from delta_core.variants.python_values import variant_array
from delta_core.variants.shredding import VARIANT_TYPE
from tests.support.variant_values import decode

VALUES: list[Any] = [
    {"b": [1, "x", None], "a": Decimal("1.50")},
    None,
    "text " * 20,
    dt.datetime(2024, 2, 29, 12, 30),
]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        variant_field("v"),
        pa.field("s", pa.struct([pa.field("n", pa.int64()), variant_field("x")])),
        pa.field("l", pa.list_(variant_field("element"))),
        pa.field("m", pa.map_(pa.string(), variant_field("value"))),
    ]
)


def rows(first: int = 0) -> pa.Table:
    variants = variant_array(VALUES)
    plain = variants.to_pylist()
    columns = [
        pa.array(range(first, first + len(VALUES)), pa.int64()),
        variants,
        pa.array([{"n": 1, "x": one} if one else None for one in plain], SCHEMA.field("s").type),
        pa.array([[one, None] for one in plain], SCHEMA.field("l").type),
        pa.array([[("k", one)] for one in plain], SCHEMA.field("m").type),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def found(table: DeltaTable, **options: Any) -> dict[int, Any]:
    """The variants of each row, in all their places."""
    return {row["id"]: plain(row) for row in table.to_pyarrow_table(**options).to_pylist()}


def plain(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        decode(row["v"]),
        row["s"] and decode(row["s"]["x"]),
        [decode(one) for one in row["l"]],
        [(key, decode(one)) for key, one in row["m"]],
    )


def expected(first: int = 0) -> dict[int, Any]:
    return {first + n: (one, one, [one, None], [("k", one)]) for n, one in enumerate(VALUES)}


@pytest.fixture(params=["none", "name", "id"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaTable:
    mode = {"delta.columnMapping.mode": request.param} if request.param != "none" else {}
    properties = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true", **mode}
    write_deltalake(tmp_path / "t", rows(), configuration=properties)
    return DeltaTable(tmp_path / "t")


def test_a_marked_column_brings_the_feature(table: DeltaTable) -> None:
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert "variantType" in (protocol.reader_features or ())
    assert "variantType" in supported_features(protocol)
    assert [field.data_type for field in table.schema()][1] == VARIANT
    assert found(table) == expected()
    # What is read says what it is, so that a copy is a table of variants, too.
    assert table.to_pyarrow_table().schema.equals(SCHEMA, check_metadata=True)


def test_files_hold_two_required_byte_strings(table: DeltaTable) -> None:
    (file,) = Path(table.table_uri.removeprefix("file://")).glob("*.parquet")
    text = str(pq.read_metadata(file).schema)
    assert text.count("required binary") >= 8
    (add,) = table.snapshot.files.to_table().to_pylist()
    assert (
        '"minValues":{"id":0' in add["stats"].replace(" ", "").replace("col-", "") or "col-" in add["stats"]
    )


def test_only_the_table_says_so_where_the_data_does_not(table: DeltaTable) -> None:
    bare = pa.Table.from_pylist(
        [{"id": 10, "v": variant_array([7])[0].as_py(), "l": variant_array([[8]]).to_pylist()}],
        schema=pa.schema([("id", pa.int64()), ("v", VARIANT_TYPE), ("l", pa.list_(VARIANT_TYPE))]),
    )
    for mode in (None, "merge"):
        write_deltalake(table, bare, mode="append", schema_mode=mode)
    row = table.to_pyarrow_table().filter(pa.compute.field("id") == 10).to_pylist()[0]
    assert decode(row["v"]) == 7
    assert [decode(one) for one in row["l"]] == [[8]]
    assert [field.name for field in table.schema()] == SCHEMA.names


def test_a_struct_of_the_same_fields_stays_a_struct(tmp_path: Path) -> None:
    parts = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    write_deltalake(tmp_path / "t", pa.table({"v": pa.array([{"metadata": b"a", "value": b"b"}], parts)}))
    table = DeltaTable(tmp_path / "t")
    assert "variantType" not in supported_features(table.protocol())
    marked = pa.table([variant_array([1])], schema=pa.schema([variant_field("v")]))
    for mode in (None, "merge"):
        write_deltalake(table, marked, mode="append", schema_mode=mode)
    assert "variantType" not in supported_features(table.protocol())
    assert table.to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize("dvs", ["true", "false"])
def test_rows_are_deleted_updated_and_moved(table: DeltaTable, dvs: str) -> None:
    table.alter.set_properties({"delta.enableDeletionVectors": dvs})
    write_deltalake(table, rows(4), mode="append")
    table.delete("id = 3 OR (id > 4 AND v IS NULL)")
    table.update({"id": "id + 100"}, "id = 0")
    table.update({"v": "s.x", "s.x": "NULL"}, "id = 2")
    table.update(new_values={"v": {"k": [True, b"b"]}, "s.x": 2**70}, predicate="id = 4")
    table.optimize.purge()
    table.optimize.compact()
    table.optimize.z_order(["id"])
    write_deltalake(table, rows(6).slice(1, 1), mode="overwrite", predicate="id = 7")
    want = {key: value for key, value in (expected() | expected(4)).items() if key not in (0, 3, 5, 7)}
    want |= {100: expected()[0], 2: (VALUES[2], None, *expected()[2][2:]), 7: expected(6)[7]}
    want[4] = ({"k": [True, b"b"]}, Decimal(2**70), *expected()[0][2:])
    assert found(table) == want
    told = table.load_cdf(0).read_all().to_pylist()
    updated = [row for row in told if row["_change_type"] == "update_postimage" and row["id"] == 100]
    assert [plain(row) for row in updated] == [expected()[0]]


def test_versions_come_back_and_are_cloned(table: DeltaTable, tmp_path: Path) -> None:
    write_deltalake(table, rows(4), mode="overwrite")
    table.create_checkpoint()
    table.restore(0)
    assert found(table) == expected()
    table.vacuum(0, enforce_retention=False, force=True, dry_run=False)
    for shallow in (False, True):
        clone_table(table.table_uri, tmp_path / f"c{shallow}", shallow=shallow)
        clone = DeltaTable(tmp_path / f"c{shallow}", allowed_roots=[table.table_uri])
        assert found(clone) == expected()
        assert "variantType" in supported_features(clone.protocol())


@pytest.mark.parametrize("listed", ["variantType-preview", "variantType", ""])
def test_columns_are_added_also_within_others(tmp_path: Path, listed: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("n", pa.int64())]))])
    properties = {f"delta.feature.{listed}": "supported"} if listed else {}
    table = DeltaTable.create(tmp_path / "t", schema, configuration=properties)
    before = pa.table({"id": [1], "s": [{"n": 1}]})
    write_deltalake(table, before, mode="append")
    table.alter.add_columns(StructField(name="v", data_type=VARIANT))
    table.alter.add_columns(StructField(name="x", data_type=VARIANT), parent="s")
    write_deltalake(table, rows().select(["id", "v", "s"]).slice(2, 1), mode="append")
    write_deltalake(table, rows().select(["id", "l"]).slice(0, 1), mode="append", schema_mode="merge")
    features = supported_features(table.protocol())
    assert {name for name in features if name.startswith("variant")} == {listed or "variantType"}
    got = {row["id"]: row for row in table.to_pyarrow_table().to_pylist()}
    assert got[1] == {"id": 1, "s": {"n": 1, "x": None}, "v": None, "l": None}
    assert decode(got[2]["v"]) == decode(got[2]["s"]["x"]) == VALUES[2]
    assert decode(got[0]["l"][0]) == VALUES[0]


def test_what_variants_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be a partition column"):
        write_deltalake(tmp_path / "p", rows(), partition_by=["v"])
    key = StructType((StructField(name="m", data_type=MapType(key_type=VARIANT, value_type=LONG)),))
    with pytest.raises(SchemaError, match="keys of a map"):
        DeltaTable.create(tmp_path / "k", key)
    generated = StructField(name="g", data_type=VARIANT, metadata={"delta.generationExpression": "v"})
    with pytest.raises(SchemaError, match="variant"):
        DeltaTable.create(tmp_path / "g", StructType((StructField(name="v", data_type=VARIANT), generated)))
    write_deltalake(tmp_path / "t", rows())
    table = DeltaTable(tmp_path / "t")
    with pytest.raises(ConfigurationError, match="Z-order by v"):
        table.optimize.z_order(["v"])
    for predicate in ("v = v", "v > 1", "CAST(v AS STRING) = 'a'"):
        with pytest.raises(ExpressionError):
            table.alter.add_constraint({"c": predicate})
    for assigned in ({"v": "1"}, {"v": "named_struct('metadata', CAST('a' AS BINARY))"}, {"id": "v"}):
        with pytest.raises(ExpressionError):
            table.update(assigned)
    with pytest.raises(ExpressionError, match="no variant"):
        table.update(new_values={"v": {1, 2}})
    assert found(table) == expected()


def test_constraints_ask_whether_there_is_one(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", rows())
    table = DeltaTable(tmp_path / "t")
    table.alter.add_constraint({"c": "v IS NOT NULL OR id < 9"})
    with pytest.raises(ConstraintViolationError, match="CHECK constraint c"):
        write_deltalake(table, rows(8), mode="append")


def test_other_data_does_not_fit(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", rows())
    table = DeltaTable(tmp_path / "t")
    more = pa.struct([*VARIANT_TYPE.fields, pa.field("typed_value", pa.int64())])
    for kind in (pa.int64(), pa.binary(), more, pa.struct([("value", pa.binary())])):
        with pytest.raises(SchemaMismatchError, match="expects variant"):
            write_deltalake(table, pa.table({"v": pa.nulls(1, kind)}), mode="append")
        with pytest.raises(SchemaEvolutionError):
            write_deltalake(table, pa.table({"v": pa.nulls(1, kind)}), mode="append", schema_mode="merge")
    shredded = pa.schema([pa.field("v", more, metadata=variant_field("v").metadata)])
    with pytest.raises(SchemaError, match="marked as a variant"):
        write_deltalake(tmp_path / "new", shredded.empty_table())


def test_a_row_that_is_no_variant_is_named(table: DeltaTable) -> None:
    bad = {"metadata": b"\x01\x00\x00", "value": b"\xff"}
    good = variant_array([1])[0].as_py()
    data = pa.Table.from_pylist(
        [{"l": None}, {"l": []}, {"l": [good, good]}, {"l": [good, bad]}],
        schema=pa.schema([("l", pa.list_(VARIANT_TYPE))]),
    )
    with pytest.raises(ConstraintViolationError, match="row 3 of 4"):
        write_deltalake(table, data, mode="append")
    assert table.version() == 0


def test_the_feature_is_dropped_when_the_columns_are_gone(table: DeltaTable) -> None:
    if "columnMapping" not in supported_features(table.protocol()):
        table.alter.set_properties({"delta.columnMapping.mode": "name"})
    with pytest.raises(FeatureRemovalError, match="variant"):
        table.alter.drop_feature("variantType")
    table.alter.drop_columns(["v", "l", "m", ("s", "x")])
    table.alter.drop_feature("variantType")
    assert "variantType" not in supported_features(table.protocol())
    assert table.to_pyarrow_table().num_rows == len(VALUES)
    table.restore(0)
    assert found(table) == expected()


def test_schema_of_nested_lists_is_read_back(tmp_path: Path) -> None:
    kind = ArrayType(element_type=MapType(key_type=LONG, value_type=ArrayType(element_type=VARIANT)))
    table = DeltaTable.create(tmp_path / "t", StructType((StructField(name="deep", data_type=kind),)))
    one = variant_array([1])[0].as_py()
    schema = table.schema().to_arrow()
    write_deltalake(table, pa.Table.from_pylist([{"deep": [[(5, [one])]]}], schema=schema), mode="append")
    write_deltalake(tmp_path / "copy", table.to_pyarrow_table())
    assert DeltaTable(tmp_path / "copy").schema() == table.schema()
