"""Decimals of all their digits: as constants, cast, and beside floating-point numbers."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_value
from delta_core.schema.arrow import from_arrow

LONGEST = "9999999999999999999999999999.9999999998"


def value_of(text: str, value: Decimal, kind: pa.DataType) -> object:
    data = pa.table({"c": pa.array([value], kind), "f": pa.array([1.5], pa.float32())})
    return evaluate(parse_value(text, from_arrow(data.schema)), data)[0].as_py()


def test_constants_of_38_digits():
    assert value_of(f"c = {LONGEST}", Decimal(LONGEST), pa.decimal128(38, 10)) is True
    assert value_of(f"c in ({LONGEST}, 1)", Decimal(LONGEST), pa.decimal128(38, 10)) is True


@pytest.mark.parametrize("text", ["0.0319", "788.0600", "3.5900", "-99999999999999.9999"])
def test_the_nearest_double_of_a_decimal(text):
    kind = pa.decimal128(18, 4)
    assert value_of("CAST(c AS DOUBLE)", Decimal(text), kind) == float(text)
    assert value_of(f"c = {float(text)!r}e0", Decimal(text), kind) is True


def test_rounding_may_take_a_digit_more():
    kind = pa.decimal128(5, 2)
    assert value_of("CAST(c AS DECIMAL(7,1))", Decimal("-999.96"), kind) == Decimal("-1000.0")


def test_a_float_beside_other_numbers():
    assert value_of("coalesce(f, 0.1e0) = 1.5", Decimal(1), pa.decimal128(5, 2)) is True
    assert value_of("coalesce(f, 1)", Decimal(1), pa.decimal128(5, 2)) == 1.5
