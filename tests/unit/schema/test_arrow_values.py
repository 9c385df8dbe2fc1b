"""`arrow_array` is `pa.array`, value for value and error for error."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core.schema.arrow_values import arrow_array, arrow_scalar

PLAIN = {
    pa.string(): st.text(),
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
}


@pytest.mark.parametrize("data_type", PLAIN, ids=str)
@given(data=st.data())
@settings(max_examples=40)
def test_plain_values_are_pyarrows(data_type: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | PLAIN[data_type], max_size=20))
    made = arrow_array(values, data_type)
    made.validate(full=True)
    assert made.equals(pa.array(values, data_type))


MAPS = pa.map_(pa.string(), pa.string())
STRUCTS = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        ([], MAPS),
        ([None, {}, {"a": None, "b": "x"}], MAPS),
        ([{"a": "ü"}, {"日": "本", "": ""}], MAPS),
        ([None, {"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}, {}], STRUCTS),
        ([None], pa.struct([])),
    ],
)
def test_maps_and_structs_are_pyarrows(values: list[Any], data_type: pa.DataType) -> None:
    made = arrow_array(values, data_type)
    made.validate(full=True)
    entries = [
        list(value.items()) if value is not None and pa.types.is_map(data_type) else value for value in values
    ]
    assert made.equals(pa.array(entries, data_type))


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (Decimal("1.50"), pa.decimal128(10, 2)),
        (b"\x00\xff", pa.binary()),
        (1, pa.float64()),
        (True, pa.int64()),
        (1.0, pa.int32()),
        ("\ud800", pa.string()),
        (2**31, pa.int32()),
        (-129, pa.int8()),
        (2**63, pa.int64()),
        (2**200, pa.int64()),
        ("x", pa.int64()),
        (None, pa.date32()),
        ([1, None], pa.list_(pa.int64())),
    ],
)
def test_other_values_are_what_pyarrow_makes_of_them(value: Any, data_type: pa.DataType) -> None:
    def outcome(make: Any) -> Any:
        try:
            return make()
        except (pa.ArrowException, OverflowError, UnicodeError, TypeError) as error:
            return type(error)

    assert outcome(lambda: arrow_array([value], data_type)) == outcome(lambda: pa.array([value], data_type))
    assert outcome(lambda: arrow_scalar(value, data_type)) == outcome(lambda: pa.scalar(value, data_type))
