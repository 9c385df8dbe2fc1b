"""Variants on their way into files: accepted shapes, checked bytes, statistics."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.data.statistics_collector import statistics_from_footer
from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.table_features.stats_leaves import stats_leaves
from delta_core.variants.encoding import (
    Dictionary,
    MalformedVariant,
    encode_array,
    encode_decimal,
    encode_integer,
    encode_object,
    encode_string,
)
from delta_core.variants.shredding import VARIANT_TYPE
from delta_core.variants.validation import check_value
from tests.support.planned_tables import PlannedTable, column, struct
from tests.support.variant_values import decode

# The dictionary of the names "a" and "b", sorted.
METADATA = bytes([0x11, 2, 0, 1, 2]) + b"ab"
EMPTY = bytes([0x01, 0, 0])
NAMES = Dictionary.parse(METADATA)
LIST = encode_array([encode_string(b"x"), b"\x00", encode_decimal(15, 1)])
OBJECT = encode_object({b"a": encode_integer(5), b"b": LIST}, NAMES)
VALUES = [
    {"metadata": METADATA, "value": OBJECT},
    None,
    {"metadata": EMPTY, "value": encode_string(b"long " * 20)},
    {"metadata": EMPTY, "value": b"\x00"},
]


def variant_table(root, *fields) -> PlannedTable:
    return PlannedTable(root, column("v", "variant"), *fields, features=["variantType"])


def loose(*fields: pa.Field) -> pa.DataType:
    return pa.struct(list(fields))


@pytest.mark.parametrize(
    "kind",
    [
        VARIANT_TYPE,
        loose(pa.field("value", pa.binary()), pa.field("metadata", pa.binary())),
        loose(pa.field("METADATA", pa.large_binary()), pa.field("Value", pa.binary_view())),
    ],
)
def test_shapes_of_input(tmp_path, kind):
    table = variant_table(tmp_path)
    spelled = {field.name.lower(): field.name for field in kind.fields}
    given = [row and {spelled[key]: value for key, value in row.items()} for row in VALUES]
    (add,) = table.write(pa.table({"v": pa.array(given, kind)})).adds
    assert [decode(row["v"]) for row in table.rows()] == [decode(row) for row in VALUES]
    assert json.loads(add.stats) == {
        "numRecords": 4,
        "minValues": {},
        "maxValues": {},
        "nullCount": {"v": 1},
    }
    text = str(pq.read_metadata(table.files()[0]).schema)
    assert text.count("required binary") == 2


def test_footers_say_nothing_of_variants(tmp_path):
    table = variant_table(tmp_path)
    table.write(pa.table({"v": pa.array(VALUES, VARIANT_TYPE)}))
    plan = table.plan
    assert [leaf.path for leaf in stats_leaves(plan.schema)] == [("v",)]
    stats = statistics_from_footer(pq.read_metadata(table.files()[0]), plan.schema)
    assert json.loads(stats)["nullCount"] == {}


def test_variants_inside_of_other_columns(tmp_path):
    array = {"type": "array", "elementType": "variant", "containsNull": True}
    mapping = {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True}
    fields = [column("s", struct(column("x", "variant"))), column("l", array), column("m", mapping)]
    table = variant_table(tmp_path, *fields)
    good, bad = VALUES[0], {"metadata": EMPTY, "value": b"\xff\xff"}
    types = {
        "s": pa.struct([("x", VARIANT_TYPE)]),
        "l": pa.list_(VARIANT_TYPE),
        "m": pa.map_(pa.string(), VARIANT_TYPE),
    }
    shapes = {"s": lambda v: {"x": v}, "l": lambda v: [None, v], "m": lambda v: [("k", v)]}
    table.write(pa.table({name: pa.array([shapes[name](good), None], kind) for name, kind in types.items()}))
    assert decode(table.rows()[0]["l"][1]) == decode(good)
    for name, kind in types.items():
        padded = pa.array([shapes[name](bad), shapes[name](good), shapes[name](good)], kind)
        table.write(pa.table({name: padded.slice(1)}))
        with pytest.raises(ConstraintViolationError, match=rf"Column {name} contains bytes.* row 1 of 2"):
            table.write(pa.table({name: pa.array([shapes[name](good), shapes[name](bad)], kind)}))


@pytest.mark.parametrize(
    ("metadata", "value", "problem"),
    [
        (b"", b"\x00", "begins with nothing"),
        (b"\x02\x00\x00", b"\x00", "begins with 02"),
        (EMPTY, b"", "begins beyond the end"),
        (EMPTY, b"\x00\x00", "bytes after the end"),
        (EMPTY, OBJECT, "has no field 0"),
        (METADATA, OBJECT[:-1], "extends beyond the end"),
        (EMPTY, encode_string(b"\xff"), "not valid UTF-8"),
        (EMPTY, encode_array([encode_string(b"\xff" * 70)]), "not valid UTF-8"),
        (EMPTY, b"\xfc", "primitive type 63 does not exist"),
        (EMPTY, bytes([8 << 2, 39, 0, 0, 0, 0]), "scale 39"),
        (METADATA[:-1] + b"\xff", b"\x00", "not valid UTF-8"),
    ],
)
def test_bytes_that_are_no_variant(tmp_path, metadata, value, problem):
    table = variant_table(tmp_path)
    rows = [VALUES[0], {"metadata": metadata, "value": value}]
    with pytest.raises(ConstraintViolationError, match="row 1 of 2") as caught:
        table.write(pa.table({"v": pa.array(rows, VARIANT_TYPE)}))
    assert problem in str(caught.value)
    assert table.files() == []


def test_fields_out_of_order_are_refused():
    # An object whose ids are 1, 0: "b" before "a".
    value = bytes([0x02, 2, 1, 0, 0, 1, 2]) + b"\x00\x00"
    with pytest.raises(MalformedVariant, match="sorted by their names"):
        check_value(value, NAMES)


def test_array_elements_stay_in_their_places():
    # Offsets 0 and 1 for an integer of two bytes: the first element reaches into the second.
    value = bytes([0x03, 2, 0, 1, 3]) + encode_integer(5) + b"\x00"
    with pytest.raises(MalformedVariant, match="extends beyond its end"):
        check_value(value, NAMES)


def test_deep_nesting_needs_no_deep_stack():
    value = b"\x00"
    for _ in range(3000):
        value = encode_array([value])
    check_value(value, NAMES)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{"metadata": EMPTY, "value": None}], loose(*(f.with_nullable(True) for f in VARIANT_TYPE.fields))),
        ([{"metadata": EMPTY}], loose(pa.field("metadata", pa.binary()))),
        (["{}"], pa.string()),
    ],
)
def test_other_input_is_refused(tmp_path, values, kind):
    with pytest.raises((SchemaMismatchError, ConstraintViolationError)):
        variant_table(tmp_path).write(pa.table({"v": pa.array(values, kind)}))
