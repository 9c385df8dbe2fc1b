"""What data files are made to hold: names, ids, order, and what is left out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import InvalidTableError, SchemaError
from delta_core.schema.column_mapping import ColumnMapping, ColumnMappingMode
from delta_core.schema.file_schema import file_fields, file_schema
from delta_core.schema.types import (
    BINARY,
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

NAME = ColumnMapping(ColumnMappingMode.NAME)
ID = ColumnMapping(ColumnMappingMode.ID)


def mapped(name, kind, number, physical, *, nullable=True, nested=None):
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    if nested:
        metadata["delta.columnMapping.nested.ids"] = nested
    return StructField(name=name, data_type=kind, nullable=nullable, metadata=metadata)


def ids_in_parquet(schema: pa.Schema, tmp_path) -> dict[str, int]:
    """Path to field id, as Parquet's own schema text spells them: the footer, not Arrow's metadata."""
    path = tmp_path / "f.parquet"
    pq.write_table(schema.empty_table(), path, store_schema=False)
    found, stack = {}, []
    for line in str(pq.read_metadata(path).schema).splitlines()[1:]:
        text = line.strip()
        if text.startswith("required group field_id=-1 schema") or not text:
            continue
        if text == "}" or text.startswith("}"):
            if stack:
                stack.pop()
            continue
        parts = text.split()
        at = next(i for i, part in enumerate(parts) if part.startswith("field_id="))
        name = parts[at + 1].rstrip(";")
        found[".".join([*stack, name])] = int(parts[at].removeprefix("field_id="))
        if text.endswith("{"):
            stack.append(name)
    return found


# The schema of PROTOCOL.md, "Example of storing identifiers for nested fields in ArrayType and MapType".
ICEBERG = StructType(
    (
        mapped(
            "col1",
            ArrayType(element_type=ArrayType(element_type=INTEGER)),
            1,
            "col-aaa",
            nested={"col-aaa.element": 100, "col-aaa.element.element": 101},
        ),
        mapped(
            "col2",
            MapType(key_type=INTEGER, value_type=ArrayType(element_type=INTEGER)),
            2,
            "col-bbb",
            nested={"col-bbb.key": 102, "col-bbb.value": 103, "col-bbb.value.element": 104},
        ),
        mapped(
            "col3",
            MapType(
                key_type=INTEGER,
                value_type=StructType(
                    (
                        mapped(
                            "subcol1",
                            ArrayType(element_type=INTEGER),
                            4,
                            "col-ddd",
                            nested={"col-ddd.element": 107},
                        ),
                    )
                ),
            ),
            3,
            "col-ccc",
            nested={"col-ccc.key": 105, "col-ccc.value": 106},
        ),
    )
)


@pytest.mark.parametrize("mapping", [NAME, ID])
def test_ids_of_every_level_reach_the_footer(tmp_path, mapping):
    found = ids_in_parquet(file_schema(ICEBERG, mapping=mapping), tmp_path)
    assert {path: number for path, number in found.items() if number >= 0} == {
        "col-aaa": 1,
        "col-aaa.list.element": 100,
        "col-aaa.list.element.list.element": 101,
        "col-bbb": 2,
        "col-bbb.key_value.key": 102,
        "col-bbb.key_value.value": 103,
        "col-bbb.key_value.value.list.element": 104,
        "col-ccc": 3,
        "col-ccc.key_value.key": 105,
        "col-ccc.key_value.value": 106,
        "col-ccc.key_value.value.col-ddd": 4,
        "col-ccc.key_value.value.col-ddd.list.element": 107,
    }


def test_without_mapping_files_have_the_tables_names_and_no_ids(tmp_path):
    schema = file_schema(ICEBERG)
    assert schema.names == ["col1", "col2", "col3"]
    assert set(ids_in_parquet(schema, tmp_path).values()) == {-1}


def test_order_of_data_partitions_and_hidden_columns():
    schema = StructType(
        (
            mapped("p", STRING, 1, "P1", nullable=False),
            mapped("v", LONG, 2, "P2", nullable=False),
            mapped("q", LONG, 3, "P3"),
            mapped("s", StructType((mapped("n", VOID, 5, "P5"), mapped("x", LONG, 6, "P6"))), 4, "P4"),
            mapped("gone", VOID, 7, "P7"),
        )
    )
    names = [f.name for f in file_fields(schema, partition_columns=["Q", "p"])]
    assert names == ["v", "s"]
    found = file_schema(
        schema,
        mapping=NAME,
        partition_columns=["Q", "p"],
        materialise_partition_columns=True,
        hidden=["_row-id-1", "_row-version-1"],
    )
    assert found.names == ["P2", "P4", "P3", "P1", "_row-id-1", "_row-version-1"]
    assert [field.nullable for field in found] == [False, True, True, False, True, True]
    assert found.field("P4").type == pa.struct([pa.field("P6", pa.int64())])
    assert found.field("P2").metadata == {b"PARQUET:field_id": b"2"}
    assert found.field("_row-id-1").type == pa.int64()
    assert found.field("_row-id-1").metadata is None


def test_variants_are_two_required_byte_strings():
    schema = StructType((StructField(name="v", data_type=VARIANT),))
    kind = file_schema(schema).field("v").type
    assert {(f.name, f.nullable) for f in kind.fields} == {("metadata", False), ("value", False)}


@pytest.mark.parametrize(
    "metadata",
    [
        {"delta.columnMapping.physicalName": "p"},
        {"delta.columnMapping.physicalName": "p", "delta.columnMapping.id": "1"},
        {"delta.columnMapping.physicalName": "p", "delta.columnMapping.id": True},
        {"delta.columnMapping.physicalName": "p", "delta.columnMapping.id": 2**31},
        {"delta.columnMapping.id": 1},
        {
            "delta.columnMapping.physicalName": "p",
            "delta.columnMapping.id": 1,
            "delta.columnMapping.nested.ids": [1],
        },
        {
            "delta.columnMapping.physicalName": "p",
            "delta.columnMapping.id": 1,
            "delta.columnMapping.nested.ids": {"p.element": None},
        },
    ],
)
def test_incomplete_mapping_is_refused(metadata):
    field = StructField(name="a", data_type=ArrayType(element_type=BINARY), metadata=metadata)
    with pytest.raises(InvalidTableError, match="a cannot be"):
        file_schema(StructType((field,)), mapping=NAME)


def test_a_hidden_column_needs_a_name_of_its_own():
    schema = StructType((mapped("a", LONG, 1, "_Row-Id"),))
    with pytest.raises(SchemaError, match="two columns _row-id"):
        file_schema(schema, mapping=NAME, hidden=["_row-id", "x"])
