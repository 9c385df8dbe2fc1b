"""The parts that rules are made of: bounds, sums, patterns, conditions."""

from __future__ import annotations

import itertools
import random
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from spark_jobs.quality.exact_sums import power_sums
from spark_jobs.quality.patterns import checked_regex, like_as_regex, matches
from spark_jobs.quality.row_conditions import row_condition
from spark_jobs.quality.rules import Rows, RowSelection, Statistic, StatisticRule
from spark_jobs.quality.suite_values import (
    InapplicableError,
    column_bounds,
    normalized_column,
    typed_value,
    value_array,
)
from spark_jobs.quality.tallies import Tally, tally_from_json, tally_of

WIDE = Context(prec=60)
PRICE = DecimalType(10, 2)


@pytest.mark.parametrize(
    ("data_type", "arrow", "values"),
    [
        (INTEGER, pa.int32(), [-(2**31), -3, 0, 2, 3, 2**31 - 1]),
        (LONG, pa.int64(), [-(2**63), 2**53 + 1, 2**63 - 1]),
        (PRICE, pa.decimal128(10, 2), [Decimal("-99999999.99"), Decimal("1.10"), Decimal("3.30")]),
        (DecimalType(38, 38), pa.decimal128(38, 38), [Decimal(1).scaleb(-38), Decimal("0.1")]),
    ],
)
def test_bounds_hold_as_exact_numbers_do(data_type: DataType, arrow: pa.DataType, values: list[Any]) -> None:
    bounds = [*values, 2.5, "3.301", 3.3, 1.1, -1e300, 10**40, "0.100000000000000000000000000000000000001", 0]
    column = pa.array([*values, None], arrow)
    for bound, strict in itertools.product(bounds, (False, True)):
        exact = Fraction(Decimal(repr(bound))) if isinstance(bound, float) else Fraction(str(bound))
        above = column_bounds(bound, None, data_type, strict_low=strict, strict_high=False).hold(column)
        below = column_bounds(None, bound, data_type, strict_low=False, strict_high=strict).hold(column)
        wanted = [(Fraction(one) > exact if strict else Fraction(one) >= exact) for one in values]
        assert above.to_pylist() == [*wanted, False], (bound, strict)
        wanted = [(Fraction(one) < exact if strict else Fraction(one) <= exact) for one in values]
        assert below.to_pylist() == [*wanted, False], (bound, strict)


def test_every_cent_is_within_itself() -> None:
    cents = [Decimal(number).scaleb(-2) for number in range(20_000)]
    column = pa.array(cents, pa.decimal128(10, 2))
    for place in range(0, len(cents), 97):
        bounds = column_bounds(
            float(cents[place]), float(cents[place]), PRICE, strict_low=False, strict_high=False
        )
        assert bounds.hold(column.slice(place, 1)).to_pylist() == [True]


def test_a_set_keeps_what_the_column_can_hold() -> None:
    assert value_array([typed_value(one, INTEGER) for one in (1, 2.5, "3", 2**40)], INTEGER).to_pylist() == [
        1,
        3,
    ]
    assert value_array([typed_value("0.005", PRICE), typed_value("1.10", PRICE)], PRICE).to_pylist() == [
        Decimal("1.10")
    ]
    for wrong in (True, "one", "1_000", [1], {"$PARAMETER": "x"}, float("inf")):
        with pytest.raises(InapplicableError):
            typed_value(wrong, INTEGER)


def test_nan_is_missing_and_zero_has_no_sign() -> None:
    column = normalized_column(pa.array([float("nan"), -0.0, None, 1.5], pa.float32()))
    assert column.to_pylist() == [None, 0.0, None, 1.5]
    assert str(column[1].as_py()) == "0.0"


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.float64(), pa.decimal128(38, 5)])
def test_sums_are_exact_however_rows_are_divided(kind: pa.DataType, rng: random.Random) -> None:
    def drawn() -> Any:
        if pa.types.is_floating(kind):
            return rng.choice([-1, 1]) * rng.random() * 10.0 ** rng.randint(-300, 300)
        if pa.types.is_decimal(kind):
            return Decimal(rng.randint(-(10**38) + 1, 10**38 - 1)).scaleb(-5, context=WIDE)
        return rng.randint(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)

    values = [drawn() for _ in range(60)]
    exact = [Fraction(one) for one in values]
    column = pa.array(values, kind)
    parts = [power_sums(column.slice(first, 7), squares=True) for first in range(0, 60, 7)]
    assert sum(total for total, _ in parts) == sum(exact)
    assert sum(squares for _, squares in parts) == sum(one * one for one in exact)
    assert power_sums(column.slice(0, 0), squares=True) == (0, 0)


def test_a_tally_travels_as_text() -> None:
    for kind, arrow, values in (
        (LONG, pa.int64(), [2**62, 5]),
        (PRICE, pa.decimal128(10, 2), [Decimal("1.10"), Decimal("-3.00")]),
        (DOUBLE, pa.float64(), [0.1, 1e-300]),
        (DATE, pa.date32(), [1, 2]),
    ):
        rows = Rows(pa.record_batch([pa.array(values, arrow)], names=["c"]))
        for statistic in (Statistic.MAX, Statistic.STDEV) if kind != DATE else (Statistic.MIN,):
            rule = StatisticRule(selection=RowSelection(columns=("c",)), statistic=statistic, data_type=kind)
            tally, _ = tally_of(rule, rows, np.arange(2))
            again = tally_from_json(tally.to_json(), kind)
            assert again == tally
            again.add(Tally())
            assert again == tally


@pytest.mark.parametrize(
    ("pattern", "escape", "matching", "other"),
    [
        ("a%", None, "a\nb", "ba"),
        ("a_c", None, "aöc", "ac"),
        (r"100\%", None, "100%", "1000"),
        ("100!%", "!", "100%", "1000"),
        (".*", None, ".*", "ab"),
    ],
)
def test_like_is_over_the_whole_text(pattern: str, escape: str | None, matching: str, other: str) -> None:
    regex = like_as_regex(pattern, escape)
    assert matches(pa.array([matching, other, None]), [regex], all_of_them=False).to_pylist() == [
        True,
        False,
        None,
    ]


@pytest.mark.parametrize("pattern", ["a(?=b)", "(?<!a)b", r"(a)\1", "a++", "(", r"\Z", 7])
def test_patterns_outside_the_dialect_are_refused(pattern: object) -> None:
    with pytest.raises(InapplicableError):
        checked_regex(pattern)


def test_conditions_are_read_in_every_spelling() -> None:
    schema = StructType(
        tuple(
            StructField(name=name, data_type=kind)
            for name, kind in (("n", LONG), ("s t", STRING), ("d", DATE))
        )
    )
    batch = pa.record_batch(
        [
            pa.array([1, 2, None]),
            pa.array(["a", None, "c'"]),
            pa.array([0, 19000, None], pa.date32()),
        ],
        names=["n", "s t", "d"],
    )
    named = {"name": "n"}
    for condition, wanted in (
        ("n > 1", [1]),
        ('col("n") == 1', [0]),
        ('col("s t").notNull()', [0, 2]),
        ({"type": "nullity", "column": {"name": "S T"}, "is_null": True}, [1]),
        ({"type": "comparison", "column": {"name": "s t"}, "operator": "==", "parameter": "c'"}, [2]),
        ({"type": "comparison", "column": named, "operator": "IN", "parameter": [1, "7"]}, [0]),
        ({"type": "comparison", "column": {"name": "d"}, "operator": ">=", "parameter": "2020-01-01"}, [1]),
        (
            {
                "type": "or",
                "conditions": [
                    {"type": "comparison", "column": named, "operator": "<", "parameter": 2},
                    {"type": "nullity", "column": named, "is_null": True},
                ],
            },
            [0, 2],
        ),
    ):
        found = row_condition(condition, schema)
        assert found is not None
        assert np.flatnonzero(Rows(batch).meeting(found)).tolist() == wanted, condition
    for wrong in (
        "n.str.len() > 1",
        {"type": "comparison", "column": {"name": "x"}},
        {"type": "no"},
        3,
        "1 > ",
    ):
        with pytest.raises(InapplicableError):
            row_condition(wrong, schema)
