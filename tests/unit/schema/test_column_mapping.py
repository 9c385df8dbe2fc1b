"""Columns of data files under the names of the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import InvalidTableError
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


def with_id(name: str, physical: str, number: object, data_type: DataType) -> StructField:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return StructField(name=name, data_type=data_type, metadata=metadata)


def in_file(name: str, number: int, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def test_fields_are_found_by_their_ids_whatever_their_names() -> None:
    pair = pa.struct([in_file("x", 2, pa.int32()), in_file("X_", 3, pa.int32())])
    schema = pa.schema([in_file("other", 1, pair)])
    # The file's `x` is the table's `b`; the table's `a`, physically `x`, came later.
    field = with_id(
        "s",
        "s",
        1,
        StructType(
            (with_id("a", "x", 4, INTEGER), with_id("b", "y", 2, INTEGER), with_id("c", "z", 3, INTEGER))
        ),
    )
    column = ColumnMapping(ColumnMappingMode.ID).file_column(field, schema)
    assert column is not None
    assert column.name == "other"
    names = [item.name for item in column.data_type]
    assert names[1:] == ["x", "X_"]
    assert names[0].casefold() not in ("x", "x_")
    values = pa.array([{names[0]: None, "x": 1, "X_": 2}, None], column.data_type)
    assert column.renamed(values).to_pylist() == [{"a": None, "b": 1, "c": 2}, None]


@pytest.mark.parametrize("number", [None, "1"])
def test_a_field_without_its_id_is_refused(number: object) -> None:
    field = with_id("s", "s", number, INTEGER)
    with pytest.raises(InvalidTableError, match="s") as caught:
        ColumnMapping(ColumnMappingMode.ID).file_column(field, pa.schema([in_file("s", 1, pa.int32())]))
    assert "delta.columnMapping.id" in str(caught.value)


IN_ID_MODE = ColumnMapping(ColumnMappingMode.ID, frozenset({"_change_type"}))


@pytest.mark.parametrize(
    "kind",
    [
        pa.int32(),
        pa.struct([pa.field("a", pa.int32())]),
        pa.list_(pa.int32()),
        pa.map_(pa.string(), pa.int32()),
    ],
)
def test_a_file_without_ids_is_not_read_by_name(kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("col", kind), pa.field("_change_type", pa.string())])
    with pytest.raises(InvalidTableError, match="s cannot be found") as caught:
        IN_ID_MODE.file_column(with_id("s", "col", 1, INTEGER), schema)
    assert "no field ids" in str(caught.value.cause)
    change = IN_ID_MODE.file_column(StructField(name="_change_type", data_type=STRING), schema)
    assert change is not None
    assert change.name == "_change_type"


@pytest.mark.parametrize("columns", [[], ["_change_type"]])
def test_a_file_without_a_column_of_the_table_needs_no_ids(columns: list[str]) -> None:
    schema = pa.schema([pa.field(name, pa.string()) for name in columns])
    assert IN_ID_MODE.file_column(with_id("s", "col", 1, INTEGER), schema) is None


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([in_file("a", 7, pa.int32())]),
        pa.list_(in_file("element", 7, pa.int32())),
        pa.map_(in_file("key", 7, pa.string()).with_nullable(False), pa.int32()),
        pa.map_(pa.string(), in_file("value", 7, pa.int32())),
        pa.list_(pa.struct([in_file("a", 7, pa.int32())])),
    ],
)
def test_ids_count_at_every_level(kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("col", kind)])
    assert IN_ID_MODE.file_column(with_id("s", "col", 1, INTEGER), schema) is None


def test_variant_in_a_null_struct() -> None:
    variant = pa.struct(
        [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
    )
    in_file = pa.struct([pa.field("col-v", variant)])
    value = {"metadata": b"\x01\x00\x00", "value": b"\x00"}
    table_type = StructType((mapped("v", "col-v", VARIANT),))
    answer = renamed([{"col-v": value}, None, {"col-v": None}], in_file, table_type)
    assert answer.to_pylist() == [{"v": value}, None, {"v": None}]


@pytest.mark.parametrize("mode", list(ColumnMappingMode))
def test_a_column_is_found_without_a_look_at_all_others(
    mode: ColumnMappingMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(item: pa.Field) -> int | None:
        asked.append(item.name)
        text = (item.metadata or {}).get(b"PARQUET:field_id")
        return None if text is None else int(text)

    monkeypatch.setattr("delta_core.schema.column_mapping._field_id", counted)
    wide = range(300)
    schema = pa.schema([in_file(f"c{number}", number, pa.int32()) for number in wide])
    columns = ColumnMapping(mode).in_file(schema)
    for number in wide:
        found = columns.column(with_id(f"c{number}", f"c{number}", number, INTEGER))
        assert found is not None
        assert found.name == f"c{number}"
    assert len(asked) <= 2 * len(wide)


def test_the_first_of_two_columns_of_one_name_counts() -> None:
    schema = pa.schema([in_file("A", 1, pa.int32()), in_file("a", 2, pa.int32())])
    field = with_id("s", "a", 2, INTEGER)
    for mode, name in ((ColumnMappingMode.NAME, "A"), (ColumnMappingMode.ID, "a")):
        found = ColumnMapping(mode).in_file(schema).column(field)
        assert found is not None
        assert found.name == name
