"""Arrow arrays of every layout with the table's types: the same values, or an error."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core.schema.conversion import convert_array, convert_chunked, floor_to_microseconds

AT = dt.datetime(2024, 2, 29, 12, 30)


@pytest.mark.parametrize(
    ("array", "target", "expected"),
    [
        (pa.nulls(2), pa.int64(), [None, None]),
        (pa.array([1, 2]), pa.null(), [None, None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string(), ["a", None, "a"]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], [5, None]), pa.int64(), [5, 5, None]),
        (
            pa.DictionaryArray.from_arrays([1, None, 0], pa.array(["a", "b"], pa.string_view())),
            pa.string(),
            ["b", None, "a"],
        ),
        (
            pa.DictionaryArray.from_arrays(
                [0], pa.array([{"a": ["x"]}], pa.struct([("a", pa.list_(pa.string_view(), 1))]))
            ),
            pa.struct([("a", pa.list_(pa.string()))]),
            [{"a": ["x"]}],
        ),
        (
            pa.RunEndEncodedArray.from_arrays([2, 4], pa.array(["a", None], pa.string_view())).slice(1, 2),
            pa.string(),
            ["a", None],
        ),
        (
            pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["{}"])),
            pa.string(),
            ["{}"],
        ),
        (pa.array([7], pa.int64()), pa.decimal128(5, 2), [Decimal("7.00")]),
        (pa.array([7], pa.int8()), pa.decimal128(3, 0), [Decimal(7)]),
        (pa.array([AT]), pa.timestamp("us", "UTC"), [AT.replace(tzinfo=dt.UTC)]),
        (pa.array([AT], pa.timestamp("ms", "Europe/Berlin")), pa.timestamp("us"), [AT]),
        (pa.array([AT], pa.timestamp("ms")), pa.timestamp("us"), [AT]),
        (pa.array([{"a": 1}, None]), pa.struct([]), [{}, None]),
        (pa.array([None], pa.struct([("a", pa.int64())])), pa.struct([]), [None]),
        (
            pa.array([{"A": 1, "gone": 2}, None]),
            pa.struct([("new", pa.string()), ("a", pa.int32())]),
            [{"new": None, "a": 1}, None],
        ),
        (
            pa.array([[1, None], None, []], pa.large_list(pa.int8())),
            pa.list_(pa.int64()),
            [[1, None], None, []],
        ),
    ],
)
def test_values_stay_what_they_are(array: pa.Array, target: pa.DataType, expected: list[object]) -> None:
    found = convert_array(array, target)
    assert found.type == target
    assert found.to_pylist() == expected


def test_slices_of_maps_keep_their_entries() -> None:
    rows = [[("a", 1)], None, [("b", 2), ("c", None)], [], [("d", 3)]]
    array = pa.array(rows, pa.map_(pa.string(), pa.int32()))
    target = pa.map_(pa.string(), pa.int64())
    assert convert_array(array, target).to_pylist() == rows
    for start, count in ((1, 3), (2, 2), (4, 1), (2, 0)):
        found = convert_array(array.slice(start, count), target)
        assert found.to_pylist() == rows[start : start + count]
        found.validate(full=True)


def test_what_does_not_fit_is_an_error() -> None:
    for array, target in (
        (pa.array([300]), pa.int8()),
        (pa.array([1000]), pa.decimal128(4, 2)),
        (pa.array(["x"]), pa.int64()),
    ):
        with pytest.raises(pa.ArrowInvalid):
            convert_array(array, target)


def test_chunks_one_by_one() -> None:
    column = pa.chunked_array([pa.array([1], pa.int8()), pa.array([2], pa.int8())])
    assert convert_chunked(column, pa.int8()) is column
    assert convert_chunked(column, pa.int64()).to_pylist() == [1, 2]


def test_nanoseconds_are_floored() -> None:
    array = pa.array([-1, -1000, -1001, 999, 1000, None], pa.int64()).cast(pa.timestamp("ns"))
    assert floor_to_microseconds(array).cast(pa.int64()).to_pylist() == [-1, -1, -2, 0, 1, None]
    assert floor_to_microseconds(pa.array([1])).to_pylist() == [1]
