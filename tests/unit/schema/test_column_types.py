"""Changing types, by name and by merging."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_core.errors import SchemaError, SchemaEvolutionError
from delta_core.schema.column_mapping import ID_KEY, NAME_KEY, ColumnMappingMode
from delta_core.schema.column_paths import type_at, walk_fields
from delta_core.schema.column_types import change_type, merge_columns
from delta_core.schema.column_uses import ColumnUse, UseKind
from delta_core.schema.mapping_assignment import assign_new
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

WIDENING = {"delta.enableTypeWidening": "true"}
SCHEMA = StructType(
    (
        StructField(name="a", data_type=SHORT, metadata={"comment": "a"}),
        StructField(
            name="s", data_type=StructType((StructField(name="x", data_type=INTEGER, nullable=False),))
        ),
        StructField(name="l", data_type=ArrayType(element_type=MapType(key_type=SHORT, value_type=DATE))),
        StructField(name="v", data_type=VOID),
        StructField(name="i", data_type=LONG, metadata={"delta.identity.start": 1}),
        StructField(name="g", data_type=INTEGER, metadata={"delta.generationExpression": "a + 1"}),
    )
)
COLUMNS = TableColumns(schema=SCHEMA, configuration=WIDENING)
MAPPED = assign_new(COLUMNS, ColumnMappingMode.NAME)
USES = (ColumnUse(kind=UseKind.GENERATED, name="g", path=("a",), owner=("g",)),)


@pytest.mark.parametrize(
    ("path", "data_type", "owner", "record"),
    [
        ("A", INTEGER, "a", {"fromType": "short", "toType": "integer"}),
        ("s.X", DOUBLE, "s.x", {"fromType": "integer", "toType": "double"}),
        ("l.element.key", LONG, "l", {"fromType": "short", "toType": "long", "fieldPath": "element.key"}),
        (
            "l.element.value",
            TIMESTAMP_NTZ,
            "l",
            {"fromType": "date", "toType": "timestamp_ntz", "fieldPath": "element.value"},
        ),
        ("s.x", DecimalType(10, 0), "s.x", {"fromType": "integer", "toType": "decimal(10,0)"}),
    ],
)
@pytest.mark.parametrize("columns", [COLUMNS, MAPPED])
def test_types_widen_and_are_recorded(columns, path, data_type, owner, record):
    changed = change_type(columns, path.split("."), data_type, uses=())
    assert type_at(changed.schema, path.split(".")) == data_type
    before, after = dict(walk_fields(columns.schema)), dict(walk_fields(changed.schema))
    assert list(before) == list(after)
    for place, field in after.items():
        old = before[place]
        expected = dict(old.metadata)
        if place == tuple(owner.split(".")):
            expected["delta.typeChanges"] = [record]
        assert field.metadata == expected
        assert field.nullable == old.nullable
    assert changed.configuration == columns.configuration


@pytest.mark.parametrize(
    ("path", "data_type", "cause"),
    [
        ("a", STRING, "only the protocol's type changes"),
        ("s.x", SHORT, "only the protocol's type changes"),
        ("i", DOUBLE, "only the protocol's type changes"),
        ("s.x", DecimalType(9, 0), "only the protocol's type changes"),
        ("s", LONG, "cannot be changed as a whole"),
        ("l", STRING, "cannot be changed as a whole"),
        ("l.element", STRING, "cannot be changed as a whole"),
        ("i", DecimalType(20, 0), "values are computed"),
        ("g", LONG, "values are computed"),
        ("nope", LONG, "columns are"),
    ],
)
def test_refused_changes(path, data_type, cause):
    with pytest.raises(SchemaEvolutionError) as caught:
        change_type(COLUMNS, path.split("."), data_type, uses=())
    assert caught.match(cause)


def test_what_names_a_column_keeps_its_type():
    with pytest.raises(SchemaEvolutionError, match=r"given another type.*generated column g"):
        change_type(COLUMNS, ["a"], LONG, uses=USES)
    use = ColumnUse(kind=UseKind.CHECK, name="c", path=("l",))
    with pytest.raises(SchemaEvolutionError, match="CHECK constraint c"):
        change_type(COLUMNS, ["l", "element", "key"], LONG, uses=[use])
    clustering = ColumnUse(kind=UseKind.CLUSTERING, name="a", path=("a",))
    assert change_type(COLUMNS, ["a"], LONG, uses=[clustering]) != COLUMNS


def test_widening_must_be_enabled():
    for configuration in ({}, {"delta.enableTypeWidening": "false"}):
        with pytest.raises(SchemaEvolutionError, match="not enabled"):
            change_type(replace(COLUMNS, configuration=configuration), ["a"], LONG, uses=())


def test_partition_columns_widen():
    columns = replace(COLUMNS, partition_columns=("a",))
    assert change_type(columns, ["a"], LONG, uses=()).partition_columns == ("a",)


@pytest.mark.parametrize("by_property", [True, False])
def test_iceberg_allows_less(by_property):
    properties = {"delta.enableIcebergCompatV1": "true"} if by_property else {}
    columns = replace(COLUMNS, configuration={**WIDENING, **properties})
    change_type(columns, ["a"], LONG, uses=(), iceberg=not by_property)
    for path, kind in ((["s", "x"], DOUBLE), (["l", "element", "value"], TIMESTAMP_NTZ)):
        with pytest.raises(SchemaEvolutionError, match="Iceberg compatibility is enabled"):
            change_type(columns, path, kind, uses=(), iceberg=not by_property)


def test_void_becomes_anything_without_a_feature_or_a_record():
    columns = replace(
        MAPPED, configuration={k: v for k, v in MAPPED.configuration.items() if k not in WIDENING}
    )
    inner = StructType((StructField(name="y", data_type=STRING),))
    changed = change_type(columns, ["v"], ArrayType(element_type=inner), uses=())
    field = dict(walk_fields(changed.schema))[("v",)]
    assert field.metadata == dict(walk_fields(MAPPED.schema))[("v",)].metadata
    new = dict(walk_fields(changed.schema))[("v", "element", "y")]
    assert new.metadata[ID_KEY] == 8
    assert new.metadata[NAME_KEY].startswith("col-")
    use = ColumnUse(kind=UseKind.CHECK, name="c", path=("v",))
    with pytest.raises(SchemaEvolutionError, match="CHECK"):
        change_type(columns, ["v"], LONG, uses=[use])


def test_the_same_type_is_nothing():
    assert change_type(COLUMNS, ["a"], SHORT, uses=USES) is COLUMNS


def data(*fields: tuple[str, object]) -> StructType:
    return StructType(tuple(StructField(name=name, data_type=kind) for name, kind in fields))


def test_merging_widens_records_and_maps():
    merged = merge_columns(
        MAPPED, data(("S", data(("x", LONG), ("y", LONG))), ("n", STRING), ("a", SHORT)), uses=USES
    )
    fields = dict(walk_fields(merged.schema))
    assert fields[("s", "x")].data_type == LONG
    assert fields[("s", "x")].metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    assert [fields[path].metadata[ID_KEY] for path in (("s", "y"), ("n",))] == [8, 9]
    assert merged.schema.names == (*SCHEMA.names, "n")


def test_merging_refuses_what_changing_a_type_does():
    with pytest.raises(SchemaEvolutionError, match="generated column g"):
        merge_columns(COLUMNS, data(("a", LONG)), uses=USES)
    with pytest.raises(SchemaEvolutionError, match="values are computed"):
        merge_columns(COLUMNS, data(("g", LONG)), uses=())
    with pytest.raises(SchemaEvolutionError, match="Column a has type short"):
        merge_columns(replace(COLUMNS, configuration={}), data(("a", LONG)), uses=())
    with pytest.raises(SchemaEvolutionError, match=r"Column s\.x has type integer"):
        merge_columns(COLUMNS, data(("s", data(("x", DOUBLE)))), uses=())
    with pytest.raises(SchemaError, match="not allowed"):
        merge_columns(COLUMNS, data(("a b", LONG)), uses=())
