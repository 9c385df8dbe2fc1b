from __future__ import annotations

import pyarrow as pa
import pytest

from delta_core.errors import SchemaError, SchemaEvolutionError
from delta_core.schema.arrow import from_arrow
from delta_core.schema.evolution import (
    add_columns,
    drop_not_null,
    merge_schemas,
    require_writable_void,
    validate_schema,
)
from delta_core.schema.types import STRING, ArrayType, MapType, StructField, StructType


def schema(*fields: pa.Field) -> StructType:
    return from_arrow(pa.schema(list(fields)))


TABLE = schema(
    pa.field("a", pa.int64(), nullable=False),
    pa.field("s", pa.struct([pa.field("x", pa.int32())])),
    pa.field("l", pa.list_(pa.struct([pa.field("p", pa.string())]))),
    pa.field("v", pa.null()),
)


def test_merge_appends_nullable_columns_at_each_level():
    data = schema(
        pa.field("new", pa.struct([pa.field("q", pa.int8(), nullable=False)]), nullable=False),
        pa.field("S", pa.struct([pa.field("y", pa.string(), nullable=False), pa.field("X", pa.int16())])),
        pa.field("l", pa.list_(pa.struct([pa.field("r", pa.bool_())]))),
        pa.field("v", pa.float64()),
    )
    merged = merge_schemas(TABLE, data)
    assert str(merged) == (
        "struct<a:long,s:struct<x:integer,y:string>,l:array<struct<p:string,r:boolean>>,v:double,"
        "new:struct<q:byte>>"
    )
    added = merged.find("new")
    assert added is not None
    assert added.nullable
    assert isinstance(added.data_type, StructType)
    assert added.data_type.fields[0].nullable
    assert not merged.fields[0].nullable


def test_nullability_widens_only_when_asked():
    data = schema(pa.field("a", pa.int64(), nullable=True))
    assert not merge_schemas(TABLE, data).fields[0].nullable
    assert merge_schemas(TABLE, data, widen_nullability=True).fields[0].nullable


def test_metadata_survives():
    table = StructType((StructField(name="a", data_type=STRING, metadata={"comment": "k"}),))
    assert merge_schemas(table, StructType((StructField(name="A", data_type=STRING),))) == table


def test_merge_is_idempotent():
    data = schema(pa.field("b", pa.int8()))
    once = merge_schemas(TABLE, data)
    assert merge_schemas(once, data) == once


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (pa.field("a", pa.string()), "a"),
        (pa.field("s", pa.struct([pa.field("x", pa.int64())])), r"s\.x"),
        (pa.field("s", pa.int32()), "s"),
    ],
)
def test_merge_refuses_type_changes(field, path):
    with pytest.raises(SchemaEvolutionError, match=f"Column {path} is"):
        merge_schemas(TABLE, schema(field))


def test_add_and_drop_not_null():
    grown = add_columns(TABLE, [StructField(name="z", data_type=STRING)])
    assert grown.names == ("a", "s", "l", "v", "z")
    with pytest.raises(SchemaEvolutionError, match="exists"):
        add_columns(TABLE, [StructField(name="A", data_type=STRING)])
    with pytest.raises(SchemaEvolutionError, match="NOT NULL"):
        add_columns(TABLE, [StructField(name="z", data_type=STRING, nullable=False)])
    assert drop_not_null(TABLE, ["A"]).fields[0].nullable
    with pytest.raises(SchemaEvolutionError, match="does not exist"):
        drop_not_null(TABLE, ["s", "nope"])
    with pytest.raises(SchemaEvolutionError, match=r"a is a long, not a struct"):
        drop_not_null(TABLE, ["a", "x"])


def test_drop_not_null_inside_a_struct():
    table = schema(
        pa.field(
            "s", pa.struct([pa.field("x", pa.int8(), nullable=False), pa.field("y", pa.int8(), False)]), False
        )
    )
    loosened = drop_not_null(table, ["S", "x"])
    assert loosened == schema(
        pa.field("s", pa.struct([pa.field("x", pa.int8()), pa.field("y", pa.int8(), False)]), False)
    )


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "a{", "a}", "a(", "a)", "a\n", "a\t", "a=b", ""])
def test_illegal_names(name):
    with pytest.raises(SchemaError, match="not allowed"):
        validate_schema(schema(pa.field("s", pa.struct([pa.field(name, pa.int8())]))))
    if name:
        validate_schema(schema(pa.field(name, pa.int8())), column_mapping=True)


def test_duplicates():
    with pytest.raises(SchemaError, match="same name"):
        validate_schema(schema(pa.field("x", pa.list_(pa.struct([("a", pa.int8()), ("A", pa.int8())])))))


def test_partition_columns():
    validate_schema(TABLE, ["A"])
    for columns in (["nope"], ["s"], ["l"], ["a", "A"], ["v"]):
        with pytest.raises(SchemaError):
            validate_schema(TABLE, columns)
    with pytest.raises(SchemaError, match="Every column"):
        validate_schema(schema(pa.field("a", pa.int8())), ["a"])


def test_void():
    require_writable_void(TABLE)
    for bad in (
        schema(pa.field("v", pa.null())),
        schema(pa.field("a", pa.int8()), pa.field("l", pa.list_(pa.null()))),
        schema(pa.field("a", pa.int8()), pa.field("s", pa.struct([pa.field("v", pa.null())]))),
        schema(pa.field("a", pa.int8()), pa.field("m", pa.map_(pa.string(), pa.null()))),
        schema(pa.field("a", pa.int8()), pa.field("m", pa.map_(pa.string(), pa.list_(pa.null())))),
    ):
        with pytest.raises(SchemaError, match="void"):
            require_writable_void(bad)


def test_maps_and_arrays_are_merged_inside() -> None:
    table = pa.schema([("m", pa.map_(pa.string(), pa.struct([("a", pa.int64())])))])
    data = pa.schema([("m", pa.map_(pa.string(), pa.struct([("a", pa.int64()), ("b", pa.string())])))])
    assert merge_schemas(from_arrow(table), from_arrow(data)) == from_arrow(data)


def test_a_new_column_may_be_null_at_every_level() -> None:
    required = pa.struct([pa.field("q", pa.int8(), nullable=False)])
    data = schema(
        pa.field("l", pa.list_(pa.field("element", required, nullable=False)), nullable=False),
        pa.field("m", pa.map_(pa.string(), pa.field("value", required, nullable=False)), nullable=False),
    )
    loose = pa.struct([pa.field("q", pa.int8())])
    assert merge_schemas(StructType(()), data) == schema(
        pa.field("l", pa.list_(loose)), pa.field("m", pa.map_(pa.string(), loose))
    )


def test_data_with_one_column_twice_is_refused() -> None:
    twice = StructType((StructField(name="a", data_type=STRING), StructField(name="A", data_type=STRING)))
    with pytest.raises(SchemaEvolutionError, match="duplicate columns: a, A"):
        merge_schemas(from_arrow(pa.schema([("a", pa.string())])), twice)


def test_a_schema_needs_a_column_and_no_name_twice_at_any_depth() -> None:
    with pytest.raises(SchemaError, match="no column"):
        validate_schema(StructType(()), ())
    inner = StructType((StructField(name="x", data_type=STRING), StructField(name="X", data_type=STRING)))
    for nested in (
        ArrayType(element_type=inner),
        MapType(key_type=STRING, value_type=inner),
        MapType(key_type=inner, value_type=STRING),
    ):
        with pytest.raises(SchemaError, match=r"[xX]"):
            validate_schema(StructType((StructField(name="n", data_type=nested),)), ())
