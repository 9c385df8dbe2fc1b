"""Decimals of all their digits: as constants, cast, and beside floating-point numbers."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_value
from delta_core.expressions.render import to_spark_sql
from delta_core.schema.arrow import from_arrow

LONGEST = "9999999999999999999999999999.9999999998"


def value_of(text: str, value: Decimal, kind: pa.DataType) -> object:
    data = pa.table({"c": pa.array([value], kind), "f": pa.array([1.5], pa.float32())})
    return evaluate(parse_value(text, from_arrow(data.schema)), data)[0].as_py()


def test_constants_of_38_digits():
    assert value_of(f"c = {LONGEST}", Decimal(LONGEST), pa.decimal128(38, 10)) is True
    assert value_of(f"c in ({LONGEST}, 1)", Decimal(LONGEST), pa.decimal128(38, 10)) is True


@pytest.mark.parametrize(
    "text", [LONGEST, "9" * 38, "0." + "1" * 38, "1234567890123456789012345678.1234567891"]
)
def test_negative_constants_of_38_digits(text):
    """They were rounded to 28 digits, and a DELETE took other rows."""
    value = Decimal(text).copy_negate()
    scale = len(text.partition(".")[2])
    kind = pa.decimal128(38, scale)
    assert value_of(f"c = -{text}", value, kind) is True
    assert value_of(f"c = -(-(-{text}))", value, kind) is True
    assert value_of(f"c in (-{text}, 1)", value, kind) is True
    assert value_of(f"c < -{text}", value, kind) is False
    stored = to_spark_sql(parse_value(f"c >= -{text}", from_arrow(pa.schema({"c": kind}))))
    assert text.lstrip("0") in stored


def test_delete_by_a_negative_constant_of_38_digits(tmp_path):
    values = [Decimal(f"-{LONGEST}"), Decimal("-9999999999999999999999999999.9999999999")]
    write_deltalake(tmp_path, pa.table({"k": [1, 2], "d": pa.array(values, pa.decimal128(38, 10))}))
    DeltaTable(tmp_path).delete(f"d = -{LONGEST}")
    assert DeltaTable(tmp_path).to_pyarrow_table()["k"].to_pylist() == [2]


def test_the_lowest_integer_is_no_decimal():
    schema = from_arrow(pa.schema({"b": pa.int64()}))
    for text in ("-9223372036854775808", "-(-(-9223372036854775808))"):
        assert parse_value(text, schema).value == -(2**63)
    assert isinstance(parse_value("-9223372036854775809", schema).value, Decimal)
    assert isinstance(parse_value("-(-9223372036854775808)", schema).value, Decimal)


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
