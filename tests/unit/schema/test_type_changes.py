"""Which types a writer may widen, against the protocol's list, and the record of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from delta_core.errors import SchemaError
from delta_core.schema.json import type_from_name
from delta_core.schema.type_changes import (
    TypeChange,
    may_widen,
    may_widen_implicitly,
    record_type_changes,
    recorded_type_changes,
    type_changes,
    without_type_changes,
)
from delta_core.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    PRIMITIVE_NAMES,
    SHORT,
    STRING,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_core.table_features.type_widening import widens

NAMED = {
    ("byte", "short"),
    ("byte", "integer"),
    ("byte", "long"),
    ("short", "integer"),
    ("short", "long"),
    ("integer", "long"),
    ("float", "double"),
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("date", "timestamp_ntz"),
}
ICEBERG = {pair for pair in NAMED if pair[1] != "double" or pair[0] == "float"} - {("date", "timestamp_ntz")}
DECIMALS = [DecimalType(p, s) for p in range(1, 39) for s in range(p + 1)]
LEAST = {"byte": 10, "short": 10, "integer": 10, "long": 20}


@pytest.mark.parametrize(("iceberg", "allowed"), [(False, NAMED), (True, ICEBERG)])
def test_primitive_types(iceberg, allowed):
    found = {
        (before, after)
        for before, after in product(sorted(PRIMITIVE_NAMES), repeat=2)
        if may_widen(PrimitiveType(before), PrimitiveType(after), iceberg=iceberg)
    }
    assert found == allowed


@pytest.mark.parametrize("before", sorted(PRIMITIVE_NAMES))
def test_primitive_types_to_decimals(before):
    allowed = {d for d in DECIMALS if may_widen(PrimitiveType(before), d)}
    least = LEAST.get(before)
    # decimal(10 + k1, k2) with k1 >= k2 >= 0, written out.
    wanted = set()
    if least is not None:
        for k1 in range(39):
            for k2 in range(k1 + 1):
                if least + k1 <= 38:
                    wanted.add(DecimalType(least + k1, k2))
    assert allowed == wanted
    assert not any(may_widen(PrimitiveType(before), d, iceberg=True) for d in DECIMALS)
    assert not any(may_widen(d, PrimitiveType(before)) for d in DECIMALS)


@pytest.mark.parametrize(
    "before", [DecimalType(1, 0), DecimalType(5, 2), DecimalType(20, 10), DecimalType(38, 2)]
)
def test_decimals(before):
    wanted = {
        DecimalType(before.precision + k1, before.scale + k2)
        for k1 in range(39 - before.precision)
        for k2 in range(k1 + 1)
    } - {before}
    assert {d for d in DECIMALS if may_widen(before, d)} == wanted
    assert {d for d in DECIMALS if may_widen(before, d, iceberg=True)} == {
        d for d in wanted if d.scale == before.scale
    }


def test_readers_understand_all_that_writers_may_do():
    types = [PrimitiveType(name) for name in sorted(PRIMITIVE_NAMES)] + DECIMALS[::7]
    pairs = [(a, b) for a, b in product(types, repeat=2) if may_widen(a, b)]
    assert len(pairs) > 100
    assert all(widens(a, b) for a, b in pairs)
    assert any(widens(a, b) and not may_widen(a, b) for a, b in product(types, repeat=2))


def test_merging_stays_in_the_family():
    assert may_widen_implicitly(SHORT, LONG)
    assert may_widen_implicitly(FLOAT, DOUBLE)
    assert may_widen_implicitly(DecimalType(5, 2), DecimalType(7, 3))
    assert not may_widen_implicitly(DecimalType(5, 2), DecimalType(7, 3), iceberg=True)
    assert not may_widen_implicitly(INTEGER, DOUBLE)
    assert not may_widen_implicitly(INTEGER, DecimalType(12, 2))


def struct(*fields: tuple[str, object]) -> StructType:
    return StructType(tuple(StructField(name=name, data_type=kind) for name, kind in fields))


BEFORE = struct(
    ("a", INTEGER),
    ("b", MapType(key_type=FLOAT, value_type=INTEGER)),
    ("c", ArrayType(element_type=MapType(key_type=STRING, value_type=DecimalType(6, 2)))),
    ("s", ArrayType(element_type=struct(("x", SHORT), ("y", VOID)))),
    ("same", STRING),
)
AFTER = struct(
    ("A", LONG),
    ("b", MapType(key_type=DOUBLE, value_type=LONG)),
    ("c", ArrayType(element_type=MapType(key_type=STRING, value_type=DecimalType(10, 4)))),
    ("s", ArrayType(element_type=struct(("x", LONG), ("y", LONG)))),
    ("same", STRING),
    ("new", LONG),
)


def test_changes_are_recorded_with_the_nearest_field():
    recorded = record_type_changes(BEFORE, AFTER)
    assert recorded.fields[0].metadata == {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    assert recorded.fields[1].metadata["delta.typeChanges"] == [
        {"fromType": "float", "toType": "double", "fieldPath": "key"},
        {"fromType": "integer", "toType": "long", "fieldPath": "value"},
    ]
    # The protocol's own example of a map in an array.
    assert recorded.fields[2].metadata["delta.typeChanges"] == [
        {"fromType": "decimal(6,2)", "toType": "decimal(10,4)", "fieldPath": "element.value"}
    ]
    assert recorded.fields[3].metadata == {}
    inner = recorded.fields[3].data_type.element_type
    assert inner.fields[0].metadata == {"delta.typeChanges": [{"fromType": "short", "toType": "long"}]}
    assert all(field.metadata == {} for field in (inner.fields[1], *recorded.fields[4:]))
    assert without_type_changes(recorded) == AFTER


def test_records_grow():
    first = record_type_changes(struct(("a", SHORT)), struct(("a", INTEGER)))
    wide = replace(first.fields[0], data_type=LONG)
    second = record_type_changes(first, StructType((wide,)))
    assert second.fields[0].metadata["delta.typeChanges"] == [
        {"fromType": "short", "toType": "integer"},
        {"fromType": "integer", "toType": "long"},
    ]
    assert record_type_changes(second, second) is second


def test_records_are_read_back():
    recorded = record_type_changes(BEFORE, AFTER)
    found = list(recorded_type_changes(recorded))
    assert found == list(type_changes(BEFORE, AFTER))
    assert TypeChange(path=("s", "element", "x"), before=SHORT, after=LONG) in found
    assert TypeChange(path=("b",), field_path=("key",), before=FLOAT, after=DOUBLE) in found


def test_blanks_in_a_decimal_are_read():
    metadata = {"delta.typeChanges": [{"fromType": "decimal(6, 2)", "toType": "decimal(10, 4)"}]}
    schema = StructType((StructField(name="a", data_type=DecimalType(10, 4), metadata=metadata),))
    (change,) = recorded_type_changes(schema)
    assert (change.before, change.after) == (type_from_name("decimal(6,2)"), DecimalType(10, 4))


@pytest.mark.parametrize(
    "record", ["text", [1], [{"fromType": "long"}], [{"fromType": "x", "toType": "long"}]]
)
def test_unreadable_records(record):
    schema = StructType((StructField(name="a", data_type=LONG, metadata={"delta.typeChanges": record}),))
    with pytest.raises(SchemaError, match="cannot be read"):
        list(recorded_type_changes(schema))
