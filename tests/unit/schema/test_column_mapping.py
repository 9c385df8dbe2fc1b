"""Columns of data files under the names of the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_core.schema.column_mapping import ColumnMapping, ColumnMappingMode
from delta_core.schema.types import (
    INTEGER,
    STRING,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

PAIR_IN_FILE = pa.struct([pa.field("col-a", pa.int32(), nullable=False), pa.field("col-b", pa.string())])


def mapped(name: str, physical: str, data_type: DataType, *, nullable: bool = True) -> StructField:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}
    return StructField(name=name, data_type=data_type, nullable=nullable, metadata=metadata)


PAIR = StructType((mapped("a", "col-a", INTEGER, nullable=False), mapped("b", "col-b", STRING)))


def renamed(values: list[Any], in_file: pa.DataType, data_type: DataType, *, start: int = 0) -> pa.Array:
    field = mapped("column", "col-x", data_type)
    schema = pa.schema([pa.field("col-x", in_file)])
    column = ColumnMapping(ColumnMappingMode.NAME).file_column(field, schema)
    assert column is not None
    answer = column.renamed(pa.array(values, column.data_type).slice(start))
    answer.validate(full=True)
    return answer


@pytest.mark.parametrize("start", [0, 1, 2])
def test_required_field_of_a_null_struct(start: int) -> None:
    values = [{"col-a": 1, "col-b": "x"}, None, {"col-a": 2, "col-b": None}]
    expected = [{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]
    assert renamed(values, PAIR_IN_FILE, PAIR, start=start).to_pylist() == expected[start:]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_structs_in_lists_and_maps(start: int) -> None:
    pair, expected = {"col-a": 1, "col-b": "x"}, {"a": 1, "b": "x"}
    items = renamed(
        [[pair, None], None, [], [pair]], pa.list_(PAIR_IN_FILE), ArrayType(element_type=PAIR), start=start
    )
    assert items.to_pylist() == [[expected, None], None, [], [expected]][start:]
    entries = renamed(
        [[("k", pair)], None, [], [("l", None)]],
        pa.map_(pa.string(), PAIR_IN_FILE),
        MapType(key_type=STRING, value_type=PAIR),
        start=start,
    )
    assert entries.to_pylist() == [[("k", expected)], None, [], [("l", None)]][start:]


def test_variant_in_a_null_struct() -> None:
    variant = pa.struct(
        [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
    )
    in_file = pa.struct([pa.field("col-v", variant)])
    value = {"metadata": b"\x01\x00\x00", "value": b"\x00"}
    table_type = StructType((mapped("v", "col-v", VARIANT),))
    answer = renamed([{"col-v": value}, None, {"col-v": None}], in_file, table_type)
    assert answer.to_pylist() == [{"v": value}, None, {"v": None}]
