from __future__ import annotations

import pyarrow as pa
import pytest

from delta_core.errors import SchemaError, SchemaEvolutionError
from delta_core.schema.arrow import from_arrow
from delta_core.schema.evolution import (
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
    with pytest.raises(SchemaEvolutionError, match=f"Column {path} has type"):
        merge_schemas(TABLE, schema(field))


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "a{", "a}", "a(", "a)", "a\n", "a\t", "a=b", ""])
def test_illegal_names(name):
    with pytest.raises(SchemaError, match="not allowed"):
        validate_schema(schema(pa.field("s", pa.struct([pa.field(name, pa.int8())]))))
    if name:
        validate_schema(schema(pa.field(name, pa.int8())), column_mapping=True)


def test_duplicates():
    with pytest.raises(SchemaError, match="same name"):
        validate_schema(schema(pa.field("x", pa.list_(pa.struct([("a", pa.int8()), ("A", pa.int8())])))))
    twice = StructField(name="a", data_type=STRING)
    with pytest.raises(SchemaError, match="Columns a and a have the same name"):
        validate_schema(StructType((twice, twice)))


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


def widening(*changes: tuple[str, pa.DataType, pa.DataType]) -> StructType:
    """A table of the first types, merged with data of the second."""
    table = schema(*(pa.field(name, before) for name, before, _ in changes))
    data = schema(*(pa.field(name.upper(), after) for name, _, after in changes))
    return merge_schemas(table, data, widen_types=True)


def test_types_widen_when_asked_and_the_change_is_recorded():
    merged = widening(
        ("a", pa.int8(), pa.int32()),
        ("b", pa.float32(), pa.float64()),
        ("c", pa.decimal128(5, 2), pa.decimal128(7, 3)),
        ("d", pa.date32(), pa.timestamp("us")),
        ("l", pa.list_(pa.map_(pa.int16(), pa.int32())), pa.list_(pa.map_(pa.int32(), pa.int32()))),
        ("s", pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int64()), ("y", pa.int64())])),
        ("v", pa.null(), pa.int64()),
        ("w", pa.int64(), pa.int32()),
    )
    assert str(merged) == (
        "struct<a:integer,b:double,c:decimal(7,3),d:timestamp_ntz,l:array<map<integer,integer>>,"
        "s:struct<x:long,y:long>,v:long,w:long>"
    )
    recorded = {field.name: field.metadata.get("delta.typeChanges") for field in merged}
    assert recorded == {
        "a": [{"fromType": "byte", "toType": "integer"}],
        "b": [{"fromType": "float", "toType": "double"}],
        "c": [{"fromType": "decimal(5,2)", "toType": "decimal(7,3)"}],
        "d": [{"fromType": "date", "toType": "timestamp_ntz"}],
        "l": [{"fromType": "short", "toType": "integer", "fieldPath": "element.key"}],
        "s": None,
        "v": None,
        "w": None,
    }
    inner = merged.fields[5].data_type
    assert isinstance(inner, StructType)
    assert inner.fields[0].metadata == {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.int32(), pa.float64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.int64(), pa.float64()),
        (pa.date32(), pa.timestamp("us", tz="UTC")),
    ],
)
def test_types_do_not_widen_to_another_family_by_themselves(before, after):
    with pytest.raises(SchemaEvolutionError, match="Column a has type"):
        widening(("a", before, after))


def test_types_widen_only_as_far_as_iceberg_does():
    table, data = schema(pa.field("a", pa.date32())), schema(pa.field("a", pa.timestamp("us")))
    with pytest.raises(SchemaEvolutionError, match="Column a has type date"):
        merge_schemas(table, data, widen_types=True, iceberg=True)
