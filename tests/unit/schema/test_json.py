from __future__ import annotations

import json

import pytest

from delta_core.errors import SchemaError
from delta_core.schema.json import schema_from_json, schema_to_json, type_from_name
from delta_core.schema.types import DecimalType, MapType, StructType

EXAMPLE = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "integer", "nullable": False, "metadata": {"comment": "x", "n": 1}},
        {
            "name": "b",
            "type": {
                "type": "struct",
                "fields": [{"name": "d", "type": "decimal(12,2)", "nullable": False, "metadata": {}}],
            },
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "c",
            "type": {"type": "array", "elementType": "timestamp_ntz", "containsNull": False},
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "f",
            "type": {"type": "map", "keyType": "string", "valueType": "void", "valueContainsNull": True},
            "nullable": True,
            "metadata": {},
        },
    ],
}


def test_round_trip_keeps_everything():
    text = json.dumps(EXAMPLE, separators=(",", ":"))
    schema = schema_from_json(text)
    assert schema_to_json(schema) == text
    assert schema.fields[0].metadata == {"comment": "x", "n": 1}
    assert isinstance(schema.fields[3].data_type, MapType)


def test_old_names():
    assert type_from_name("decimal") == DecimalType(10, 0)
    assert str(type_from_name("null")) == "void"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '"long"',
        '{"type":"struct"}',
        '{"type":"struct","fields":[{"type":"long"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"geometry"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"decimal(39,0)"}]}',
        '{"type":"struct","fields":[{"name":"a","type":"decimal(5,6)"}]}',
        '{"type":"struct","fields":[{"name":"a","type":{"type":"union"}}]}',
    ],
)
def test_malformed(text):
    with pytest.raises(SchemaError) as caught:
        schema_from_json(text)
    assert caught.value.cause
    assert caught.value.fix


def test_error_names_the_nested_column():
    text = json.dumps(EXAMPLE).replace("decimal(12,2)", "interval")
    with pytest.raises(SchemaError, match=r"b\.d"):
        schema_from_json(text)


def test_empty_struct_parses():
    assert schema_from_json('{"type":"struct","fields":[]}') == StructType(())


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"type": "struct", "fields": [{"name": "a", "type": 7, "nullable": True}]}, "is a int"),
        (
            {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": [1]}]},
            "metadata must be an object",
        ),
    ],
)
def test_parts_of_another_kind_are_named(document: dict[str, object], reason: str) -> None:
    with pytest.raises(SchemaError, match=rf"a.*{reason}"):
        schema_from_json(json.dumps(document))
