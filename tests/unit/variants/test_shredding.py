"""Variants in several columns become whole again; what does not fit together is refused."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_core.variants.encoding import MalformedVariant
from delta_core.variants.shredding import MAX_DEPTH, VARIANT_TYPE, is_shredded, reassemble
from tests.support.variant_values import decode

EMPTY = b"\x01\x00\x00"
ABC = b"\x01\x03\x00\x01\x02\x03abc"
INT_1 = b"\x0c\x01"
NULL = b"\x00"
OBJECT_C = b"\x02\x01\x02\x00\x02" + INT_1
"""The object {"c": 1}, by the names of ABC."""


def pair(typed: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", typed)])


def column(typed: pa.DataType, rows: list[Any]) -> pa.StructArray:
    fields = [pa.field("metadata", pa.binary(), nullable=False), *pair(typed).fields]
    return pa.array(rows, pa.struct(fields))


def row(typed: Any, value: bytes | None = None, metadata: bytes = EMPTY) -> dict[str, Any]:
    return {"metadata": metadata, "value": value, "typed_value": typed}


def values(array: pa.StructArray) -> list[Any]:
    whole = reassemble(array)
    assert whole.type == VARIANT_TYPE
    whole.validate(full=True)
    return [decode(item) for item in whole.to_pylist()]


AT = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        (pa.bool_(), [True, False]),
        (pa.int8(), [-128, 127]),
        (pa.int16(), [-129, 128, 32767]),
        (pa.int32(), [-32769, 2**31 - 1]),
        (pa.int64(), [0, -(2**31) - 1, 2**63 - 1, -(2**63)]),
        (pa.float32(), [1.5, -0.25]),
        (pa.float64(), [0.1, 1e300]),
        (pa.decimal128(9, 2), [Decimal("1.25"), Decimal("-9999999.99"), Decimal("0.00")]),
        (pa.decimal128(18, 0), [Decimal("999999999999999999")]),
        (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789")]),
        (pa.decimal128(38, 38), [Decimal("1E-38")]),
        (pa.date32(), [dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
        (pa.time64("us"), [dt.time(23, 59, 59, 999_999)]),
        (pa.timestamp("us", "UTC"), [AT.replace(tzinfo=dt.UTC)]),
        (pa.timestamp("us"), [AT]),
        (pa.timestamp("ns"), [AT]),
        (pa.timestamp("ns", "UTC"), [AT.replace(tzinfo=dt.UTC)]),
        (pa.binary(), [b"", b"\x00\xff"]),
        (pa.string(), ["", "ö" * 31, "x" * 63, "x" * 64, "x" * 70_000]),
    ],
)
def test_every_primitive_type(kind: pa.DataType, items: list[Any]) -> None:
    assert values(column(kind, [row(item) for item in items])) == items


def test_uuids() -> None:
    given = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    assert values(column(pa.binary(16), [row(given.bytes)])) == [given]
    typed = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([given.bytes], pa.binary(16)))
    parts = [pa.array([EMPTY]), typed]
    assert values(pa.StructArray.from_arrays(parts, names=["metadata", "typed_value"])) == [given]


def test_integers_are_as_narrow_as_those_never_shredded() -> None:
    whole = reassemble(column(pa.int64(), [row(n) for n in (1, 128, 1 << 15, 1 << 31)]))
    assert [value[:1].hex() for value in whole.field("value").to_pylist()] == ["0c", "10", "14", "18"]


def test_the_value_counts_where_nothing_is_typed() -> None:
    array = column(pa.int64(), [row(1), row(None, NULL), row(None, b"\x05x"), None, row(None)])
    assert values(array) == [1, None, "x", None, None]
    assert reassemble(array).is_null().to_pylist() == [False, False, False, True, False]


def test_objects_are_joined_from_columns_and_the_rest() -> None:
    kind = pa.struct([pa.field("b", pair(pa.string())), pa.field("a", pair(pa.int32()))])
    missing = {"value": None, "typed_value": None}

    def fields(a: Any = missing, b: Any = missing) -> dict[str, Any]:
        return {"a": a, "b": b}

    array = column(
        kind,
        [
            row(fields({"value": None, "typed_value": 1}, {"value": None, "typed_value": "x"}), None, ABC),
            row(fields(b={"value": NULL, "typed_value": None}), OBJECT_C, ABC),
            row(fields(), None, ABC),
            row(None, INT_1, ABC),
            row(fields(a={"value": b"\x05s", "typed_value": None}), b"\x02\x00\x00", ABC),
        ],
    )
    assert values(array) == [{"a": 1, "b": "x"}, {"b": None, "c": 1}, {}, 1, {"a": "s"}]


def test_arrays_and_what_is_in_them() -> None:
    element = pair(pa.struct([pa.field("a", pair(pa.list_(pa.field("element", pair(pa.int64())))))]))
    inner = [{"value": None, "typed_value": 7}, {"value": NULL, "typed_value": None}]
    objects = {"value": None, "typed_value": {"a": {"value": None, "typed_value": inner}}}
    array = column(
        pa.list_(pa.field("element", element)),
        [
            row([], None, ABC),
            row([objects, {"value": INT_1, "typed_value": None}], None, ABC),
            row(None, INT_1, ABC),
            None,
            row([objects] * 300, None, ABC),
            # A missing element, which no writer should write, is where a value is required.
            row([{"value": None, "typed_value": None}], None, ABC),
        ],
    )
    expected = [[], [{"a": [7, None]}, 1], 1, None, [{"a": [7, None]}] * 300, [None]]
    assert values(array) == expected
    assert values(array.slice(1, 3)) == expected[1:4]
    large = array.cast(
        pa.struct(
            [
                pa.field("metadata", pa.binary(), nullable=False),
                pa.field("value", pa.binary()),
                pa.field("typed_value", pa.large_list(pa.field("element", element))),
            ]
        )
    )
    assert values(large) == expected


def test_names_beyond_one_byte() -> None:
    names = [f"{number:05d}" for number in range(70_000)]
    text = "".join(names).encode()
    offsets = b"".join((5 * n).to_bytes(3, "little") for n in range(70_001))
    metadata = b"\x81" + (70_000).to_bytes(3, "little") + offsets + text
    kind = pa.struct([pa.field(name, pair(pa.int64())) for name in ("69999", "00300", "00001")])
    typed = {name: {"value": None, "typed_value": int(name)} for name in ("69999", "00300", "00001")}
    assert values(column(kind, [row(typed, None, metadata)])) == [{"00001": 1, "00300": 300, "69999": 69999}]


def test_more_fields_than_a_byte_counts() -> None:
    names = [f"k{number:03d}" for number in range(300)]
    offsets = b"".join((4 * n).to_bytes(2, "little") for n in range(301))
    metadata = b"\x41" + (300).to_bytes(2, "little") + offsets + "".join(names).encode()
    kind = pa.struct([pa.field(name, pair(pa.int64())) for name in names])
    typed = {name: {"value": None, "typed_value": at} for at, name in enumerate(names)}
    whole = column(kind, [row(typed, None, metadata)])
    assert values(whole) == [{name: at for at, name in enumerate(names)}]
    # What was put together can be the rest beside other columns.
    rest = reassemble(whole).field("value")[0].as_py()
    other = column(pa.struct([pa.field("zz", pair(pa.int64()))]), [row({"zz": None}, rest, metadata)])
    assert values(other) == [{name: at for at, name in enumerate(names)}]


A_LONG = {"a": {"value": None, "typed_value": 1}}


@pytest.mark.parametrize(
    ("typed", "given", "cause"),
    [
        (pa.int64(), row(1, INT_1), "are both set"),
        (pa.list_(pair(pa.int64())), row([], INT_1), "are both set"),
        (pa.struct([pa.field("a", pair(pa.int64()))]), row(A_LONG, INT_1, ABC), "is not an object"),
        (pa.struct([pa.field("a", pair(pa.int64()))]), row(A_LONG, None, EMPTY), "has no field 'a'"),
        (pa.struct([pa.field("c", pair(pa.int64()))]), row({"c": None}, OBJECT_C, ABC), "'c' exists twice"),
        (pa.struct([pa.field("a", pa.int64())]), row({"a": 1}), "not a group"),
        (pa.struct([pa.field("a", pa.struct([("x", pa.int64())]))]), row({"a": None}), r"columns \['x'\]"),
        (pa.struct([pa.field("a", pa.struct([]))]), row({"a": None}), r"columns \[\]"),
        (pa.struct([pa.field("a", pa.struct([("value", pa.int64())]))]), row({"a": None}), "type int64"),
        (pa.list_(pa.int64()), row([1]), "elements of an array have type int64"),
        (pa.uint32(), row(1), "uint32, which has no variant encoding"),
        (pa.timestamp("ms"), row(AT), "which has no variant encoding"),
        (pa.decimal256(50, 2), row(Decimal(1)), "which has no variant encoding"),
        (pa.struct([pa.field("a", pair(pa.int64()))]), row(A_LONG, None, b"\x02"), "begins with 02"),
        (pa.int64(), {"metadata": None, "value": None, "typed_value": 1}, "no metadata"),
    ],
)
def test_what_does_not_fit_is_refused(typed: pa.DataType, given: dict[str, Any], cause: str) -> None:
    with pytest.raises(MalformedVariant, match=cause):
        reassemble(column(typed, [given]))


def test_two_columns_of_one_name_are_refused() -> None:
    child = pa.array([None], pair(pa.int64()))
    typed = pa.StructArray.from_arrays([child, child], names=["a", "a"])
    array = pa.StructArray.from_arrays(
        [pa.array([ABC]), pa.array([None], pa.binary()), typed], names=["metadata", "value", "typed_value"]
    )
    with pytest.raises(MalformedVariant, match="have the same name"):
        reassemble(array)


def test_metadata_of_another_type_is_refused() -> None:
    kind = pa.struct([("metadata", pa.string()), ("value", pa.binary())])
    with pytest.raises(MalformedVariant, match="metadata has type string"):
        reassemble(pa.array([{"metadata": "", "value": None}], kind))


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> pa.StructArray:
        child = pa.array([{"value": None, "typed_value": 1}], pair(pa.int64()))
        for _ in range(depth):
            child = pa.StructArray.from_arrays(
                [pa.StructArray.from_arrays([child], names=["a"])], ["typed_value"]
            )
        return pa.StructArray.from_arrays(
            [pa.array([ABC]), child.field("typed_value")], names=["metadata", "typed_value"]
        )

    found = values(nested(MAX_DEPTH))[0]
    for _ in range(MAX_DEPTH):
        found = found["a"]
    assert found == 1
    with pytest.raises(MalformedVariant, match="deep"):
        reassemble(nested(MAX_DEPTH + 2))


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ([("metadata", False), ("value", False)], False),
        ([("value", True), ("metadata", False)], True),
        ([("metadata", False), ("typed_value", True)], True),
        ([("metadata", False), ("typed_value", False)], False),
        ([("value", True), ("typed_value", True)], False),
        ([("metadata", False), ("value", True), ("other", True)], False),
    ],
)
def test_which_columns_are_in_parts(fields: list[tuple[str, bool]], answer: bool) -> None:
    kind = pa.struct([pa.field(name, pa.binary(), nullable=nullable) for name, nullable in fields])
    assert is_shredded(kind) is answer
    assert is_shredded(pa.binary()) is False
