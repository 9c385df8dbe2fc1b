from __future__ import annotations

import pyarrow as pa
import pytest

from delta_core.errors import SchemaError
from delta_core.schema.arrow import from_arrow, to_arrow, type_from_arrow
from delta_core.schema.json import schema_from_json, type_from_name
from delta_core.schema.types import PRIMITIVE_NAMES, ArrayType, MapType, StructField, StructType

PRIMITIVES = sorted(PRIMITIVE_NAMES - {"variant"})


def test_all_types_round_trip():
    fields = [StructField(name=f"c_{name}", data_type=type_from_name(name)) for name in PRIMITIVES]
    fields.append(StructField(name="dec", data_type=type_from_name("decimal(38,18)"), nullable=False))
    inner = StructType(tuple(fields))
    schema = StructType(
        (
            *fields,
            StructField(name="s", data_type=inner),
            StructField(name="l", data_type=ArrayType(element_type=inner, contains_null=False)),
            StructField(name="m", data_type=MapType(key_type=type_from_name("long"), value_type=inner)),
        )
    )
    assert from_arrow(to_arrow(schema)) == schema


def test_timestamps():
    schema = schema_from_json(
        '{"type":"struct","fields":[{"name":"a","type":"timestamp"},{"name":"b","type":"timestamp_ntz"}]}'
    )
    assert to_arrow(schema).types == [pa.timestamp("us", tz="UTC"), pa.timestamp("us")]
    assert str(type_from_arrow(pa.timestamp("ns", tz="Europe/Oslo"))) == "timestamp"


@pytest.mark.parametrize(
    ("arrow", "delta"),
    [
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.large_string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "long"),
        (pa.binary(4), "binary"),
        (pa.binary_view(), "binary"),
        (pa.json_(), "string"),
        (pa.uuid(), "binary"),
        (pa.fixed_shape_tensor(pa.float32(), (2, 2)), "array<float>"),
        (pa.uint8(), "short"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.decimal256(30, 2), "decimal(30,2)"),
        (pa.large_list(pa.int32()), "array<integer>"),
        (pa.list_(pa.int32(), 3), "array<integer>"),
        (pa.map_(pa.string(), pa.int8()), "map<string,byte>"),
    ],
)
def test_layouts(arrow, delta):
    assert str(type_from_arrow(arrow)) == delta


@pytest.mark.parametrize(
    "arrow", [pa.time32("s"), pa.duration("us"), pa.decimal256(60, 2), pa.month_day_nano_interval()]
)
def test_types_that_delta_lacks(arrow):
    with pytest.raises(SchemaError, match=r"x\.y"):
        from_arrow(pa.schema([pa.field("x", pa.struct([pa.field("y", arrow)]))]))
