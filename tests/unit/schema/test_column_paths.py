"""Finding and changing columns by path."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_core.errors import SchemaEvolutionError
from delta_core.schema.column_paths import (
    display_path,
    field_at,
    find_path,
    is_related,
    is_within,
    struct_at,
    transform_fields,
    type_at,
    update_field,
    update_type,
    walk_fields,
)
from delta_core.schema.types import INTEGER, LONG, STRING, ArrayType, MapType, StructField, StructType

INNER = StructType((StructField(name="X", data_type=INTEGER, metadata={"comment": "x"}),))
SCHEMA = StructType(
    (
        StructField(name="a", data_type=LONG),
        StructField(name="S", data_type=INNER),
        StructField(name="l", data_type=ArrayType(element_type=INNER)),
        StructField(name="m", data_type=MapType(key_type=INNER, value_type=ArrayType(element_type=STRING))),
    )
)


@pytest.mark.parametrize(
    ("given", "found", "data_type"),
    [
        ("A", "a", LONG),
        ("s.x", "S.X", INTEGER),
        ("L.ELEMENT.x", "l.element.X", INTEGER),
        ("m.key.x", "m.key.X", INTEGER),
        ("m.value.element", "m.value.element", STRING),
    ],
)
def test_paths_are_found_without_case(given, found, data_type):
    path = find_path(SCHEMA, given.split("."))
    assert path == tuple(found.split("."))
    assert type_at(SCHEMA, path) == data_type


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("b", "columns are a, S, l, m"),
        ("S.y", "fields of S are X"),
        ("a.x", "a has type long"),
        ("l.X", "continues with element"),
        ("m.X", "key or value"),
        ("", "is empty|columns are"),
    ],
)
def test_what_is_missing_is_said(path, cause):
    with pytest.raises(SchemaEvolutionError, match="does not exist") as caught:
        find_path(SCHEMA, path.split(".") if path else ())
    assert caught.match(cause)


def test_fields_and_structs():
    assert field_at(SCHEMA, ("s", "x")) is INNER.fields[0]
    assert field_at(SCHEMA, ("l", "element")) is None
    assert struct_at(SCHEMA, ()) is SCHEMA
    assert struct_at(SCHEMA, ("m", "key")) == INNER
    with pytest.raises(SchemaEvolutionError, match="Continue the path with 'element'"):
        struct_at(SCHEMA, ("l",))
    with pytest.raises(SchemaEvolutionError, match="'key' or 'value'"):
        struct_at(SCHEMA, ("m",))


def test_only_what_is_named_changes():
    changed = update_type(SCHEMA, ("m", "key", "x"), lambda _: LONG)
    assert str(changed) == str(SCHEMA).replace("map<struct<X:integer>", "map<struct<X:long>")
    assert type_at(changed, ("m", "key")).fields[0].metadata == {"comment": "x"}
    renamed = update_field(SCHEMA, ("l", "element", "x"), lambda field: replace(field, name="Y"))
    assert str(renamed) == str(SCHEMA).replace("array<struct<X:", "array<struct<Y:")
    with pytest.raises(SchemaEvolutionError, match="neither a name"):
        update_field(SCHEMA, ("m", "value"), lambda field: field)


def test_walk_and_transform_go_everywhere():
    assert [".".join(path) for path, _ in walk_fields(SCHEMA)] == [
        "a",
        "S",
        "S.X",
        "l",
        "l.element.X",
        "m",
        "m.key.X",
    ]
    marked = transform_fields(SCHEMA, lambda path, field: replace(field, metadata={"path": path}))
    assert all(field.metadata["path"] == path for path, field in walk_fields(marked))
    assert transform_fields(SCHEMA, lambda _, field: field) == SCHEMA


def test_relations():
    assert is_related(("a",), ("A", "b"))
    assert is_related(("a", "b"), ("A",))
    assert not is_related(("a", "b"), ("a", "c"))
    assert is_within(("a", "b"), ("A",))
    assert not is_within(("a",), ("a", "b"))
    assert display_path(("a", "b.c", "d`e")) == "a.`b.c`.`d``e`"
