"""Python values as variants: what comes back by a decoder that shares nothing, and what is refused."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.errors import SchemaMismatchError
from delta_core.schema.arrow import is_marked, variant_field
from delta_core.variants.python_values import encoded, variant_array
from delta_core.variants.shredding import VARIANT_TYPE
from delta_core.variants.validation import first_malformed
from tests.support.variant_values import decode

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.decimals(-(10**20), 10**20, places=6)
    | st.text(max_size=80)
    | st.binary(max_size=9)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(dt.UTC))
    | st.uuids()
)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=9,
)


@given(st.lists(ANY, max_size=4))
def test_values_come_back(values: list[Any]) -> None:
    array = variant_array(values)
    assert array.type == VARIANT_TYPE
    assert [decode(row) for row in array.to_pylist()] == values
    assert first_malformed(array) is None


def test_a_variant_null_is_there() -> None:
    assert decode(encoded(None)) is None
    assert variant_array([None, [None]]).is_null().to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ((1, (2,)), [1, [2]]),
        (bytearray(b"a"), b"a"),
        (2**70, Decimal(2**70)),
        (-(2**63) - 1, Decimal(-(2**63) - 1)),
        (Decimal("1E+5"), Decimal(100000)),
        (Decimal("-0.00"), Decimal("0.00")),
        (uuid.UUID(int=7), uuid.UUID(int=7)),
        (
            dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        ),
        ({f"{n:05}" * 9: n for n in range(2000)}, None),
    ],
)
def test_values_of_other_types_and_sizes(value: Any, same: Any) -> None:
    assert decode(encoded(value)) == (value if same is None else same)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({1, 2}, "type set has no variant encoding"),
        ([object()], "type object has no variant encoding"),
        ({1: 2}, "key 1 is not a string"),
        (10**38, "more than 38 digits"),
        (Decimal("1E-39"), "more than 38 digits"),
        (Decimal("1E+999999999"), "more than 38 digits"),
        (Decimal("NaN"), "is not a number"),
        ("\ud800", "cannot be encoded in UTF-8"),
        (deep(300), "more than 200 levels"),
        (dt.time(1), "type time has no variant encoding"),
    ],
)
def test_what_is_no_variant_is_named(value: Any, problem: str) -> None:
    with pytest.raises(SchemaMismatchError, match="Value 1 cannot be a variant") as caught:
        variant_array([0, value])
    assert problem in caught.value.cause


def test_marks() -> None:
    field = variant_field("v", nullable=False)
    assert is_marked(field)
    assert not field.nullable
    assert not is_marked(field.remove_metadata())
    assert not is_marked(field.with_metadata({"ARROW:extension:name": "arrow.json"}))
