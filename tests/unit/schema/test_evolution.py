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
from delta_core.schema.types import STRING, StructField, StructType


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
    ):
        with pytest.raises(SchemaError, match="void"):
            require_writable_void(bad)
