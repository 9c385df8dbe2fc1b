"""Casts and arithmetic against Python's own numbers, and the nulls and constants among their operands."""

from __future__ import annotations

import datetime as dt
import math
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.arithmetic import cast_value
from delta_core.expressions.ast import Call, Column, Comparison, ComparisonOperator, Literal
from delta_core.expressions.evaluate import evaluate, filter_rows, matches
from delta_core.expressions.parse import parse_predicate, parse_value
from delta_core.expressions.typing import type_of
from delta_core.schema.arrow import from_arrow, type_from_arrow

FLOATS = [0.1, 1.005, 2.675, -0.5, 1e-7, 123456.789, 0.30000000000000004, None]
DATA = pa.table(
    {
        "x": pa.array(FLOATS, pa.float64()),
        "y": pa.array([0.1, 0.25, 2.5, -0.5, 1e-7, 16777216.0, 3.0, None], pa.float32()),
        "a": pa.array([0, 1, -1, 127, None, 3, 4, 5], pa.int32()),
        "c": pa.array([Decimal(n) / 100 for n in (0, 1, -1, 999, 100, 50, 5)] + [None], pa.decimal128(5, 2)),
        "s": ["abc", "b", "", None, "ab", "c", "aab", "x"],
        "part": ["b", "abc", "", "a", None, "", "ab", "y"],
        "by": [b"\xff", b"", None, b"abc", b"\x00\x00", b"a", b"b", b"c"],
        "t": pa.array([dt.datetime(2024, 2, 29, hour) for hour in range(8)], pa.timestamp("us", "UTC")),
        "n": pa.array([dt.datetime(2024, 2, 29, hour) for hour in range(8)], pa.timestamp("us")),
        "v": pa.nulls(8),
    }
)
SCHEMA = from_arrow(DATA.schema)


def values_of(text: str) -> list[object]:
    return evaluate(parse_value(text, SCHEMA), DATA).to_pylist()


def rounded(value: float | None, scale: int) -> Decimal | None:
    if value is None:
        return None
    with localcontext(prec=90):
        return Decimal(repr(value)).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)


@pytest.mark.parametrize("scale", [0, 1, 2, 7, 17, 30])
def test_a_float_becomes_the_decimal_that_it_is_written_as(scale):
    assert values_of(f"CAST(x AS DECIMAL(38,{scale}))") == [rounded(x, scale) for x in FLOATS]
    # A float is a double first, of more digits.
    singles = DATA.column("y").to_pylist()
    assert values_of(f"CAST(y AS DECIMAL(38,{scale}))") == [rounded(y, scale) for y in singles]


def test_a_constant_float_becomes_the_same_decimal():
    assert values_of("CAST(1.005e0 AS DECIMAL(10,2))") == [Decimal("1.01")] * 8
    assert values_of("CAST(CAST(NULL AS DOUBLE) AS DECIMAL(10,2))") == [None] * 8


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e9])
def test_a_float_without_a_decimal_is_refused_at_the_row(value):
    data = pa.table({"x": [1.0, value]})
    with pytest.raises(ExpressionError, match="cannot be cast") as caught:
        evaluate(parse_value("CAST(x AS DECIMAL(9,2))", from_arrow(data.schema)), data)
    assert caught.value.fix.startswith("Filter out such rows first")


@pytest.mark.parametrize("name", ["a", "c", "x", "y"])
def test_a_number_is_true_unless_it_is_zero(name):
    expected = [None if value is None else value != 0 for value in DATA.column(name).to_pylist()]
    assert values_of(f"CAST({name} AS BOOLEAN)") == expected
    assert values_of(f"CAST(CAST({name} AS BOOLEAN) AS DECIMAL(3,1))") == [
        None if value is None else Decimal(int(value)) for value in expected
    ]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("CAST(a AS INT)", "a"),
        ("CAST(n AS TIMESTAMP)", "t"),
        ("CAST(t AS TIMESTAMP_NTZ)", "n"),
        ("CAST(CAST(a AS DECIMAL(12,2)) AS INT)", "a"),
        ("CAST(v AS INT)", "v"),
        ("bigint(a)", "a"),
        ("a + 0", "a"),
        ("coalesce(v, null, a)", "a"),
        ("coalesce(v, null)", "v"),
    ],
)
def test_what_gives_the_column_itself(text, same):
    assert values_of(text) == DATA.column(same).to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        *(f"{left} {operator} null" for left in ("a", "null") for operator in "+-*/%"),
        "null + a",
        "x % null",
        "null % 2e0",
        "v = 1",
        "v in (1, 2)",
        "a in (null)",
        "year(null)",
        "hour(v)",
        "length(null)",
        "substring(s, null)",
        "substring(null, -5, 3)",
        "contains(s, null)",
        "startswith(null, s)",
        "last_day(v)",
        "date_trunc('YEAR', v)",
    ],
)
def test_a_null_operand_gives_null(text):
    expression = parse_value(text, SCHEMA)
    found = evaluate(expression, DATA)
    assert found.to_pylist() == [None] * 8
    assert type_from_arrow(found.type) == type_of(expression, SCHEMA)


@pytest.mark.parametrize("text", ["null", "v", "v and a > 0", "null or a > 1000"])
def test_a_condition_that_is_null_matches_no_row(text):
    condition = parse_predicate(text, SCHEMA)
    assert matches(condition, DATA).to_pylist() == [False] * 8
    assert filter_rows(condition, DATA).num_rows == 0


def test_isnan_of_null_is_false():
    assert values_of("isnan(v)") == values_of("isnan(null)") == [False] * 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5.5e0 % 2e0", 1.5),
        ("-5.5e0 % 2e0", -1.5),
        ("substring('abc', -5, 3)", "a"),
        ("substring('abc', -5, 1)", ""),
        ("substring('abc', 0, 2)", "ab"),
        ("date_format(DATE '2024-02-29', 'yyyy-MM')", "2024-02"),
        ("date_format(TIMESTAMP '2024-02-29 23:00:00', 'HH')", "23"),
        ("length(X'00FF')", 2),
        ("contains('abc', 'bc')", True),
    ],
)
def test_constants_alone(text, expected):
    assert values_of(text) == [expected] * 8


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("contains", lambda text, part: part in text),
        ("startswith", lambda text, part: text.startswith(part)),
        ("endswith", lambda text, part: text.endswith(part)),
    ],
)
def test_texts_searched_for_another_column(name, holds):
    strings, parts = DATA.column("s").to_pylist(), DATA.column("part").to_pylist()

    def expected(left, right):
        return [None if a is None or b is None else holds(a, b) for a, b in zip(left, right, strict=True)]

    assert values_of(f"{name}(s, part)") == expected(strings, parts)
    assert values_of(f"{name}('abc', part)") == expected(["abc"] * 8, parts)


def test_the_length_of_binary_is_in_bytes():
    assert values_of("length(by)") == [None if v is None else len(v) for v in DATA.column("by").to_pylist()]


def test_dates_beside_times_are_midnight():
    data = pa.table({"d": [dt.date(2024, 2, 29)] * 2}).append_column(
        "t", pa.array([dt.datetime(2024, 2, 29, hour, tzinfo=dt.UTC) for hour in (0, 1)])
    )
    schema = from_arrow(data.schema)
    for text, expected in (("d < t", [False, True]), ("t > d", [False, True]), ("d = t", [True, False])):
        assert evaluate(parse_predicate(text, schema), data).to_pylist() == expected


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        (Comparison(ComparisonOperator.EQ, Column(("s",)), Literal(1)), "cannot be compared"),
        (Comparison(ComparisonOperator.GT, Column(("x",)), Literal("1")), "cannot be compared"),
        (Comparison(ComparisonOperator.EQ, Column(("none",)), Literal(1)), "none is not in the data"),
        (
            Comparison(ComparisonOperator.EQ, Call("soundex", (Column(("s",)),)), Literal("1")),
            "was not resolved",
        ),
    ],
)
def test_what_was_not_resolved_is_refused(expression, part):
    with pytest.raises(ExpressionError, match=part) as caught:
        evaluate(expression, DATA)
    assert caught.value.fix


@pytest.mark.parametrize("as_scalar", [False, True])
def test_a_decimal_is_written_with_all_of_its_digits(as_scalar):
    values = [Decimal("0"), Decimal("0.0000001"), Decimal("-12.5"), None]
    column = pa.array(values, pa.decimal128(20, 10))
    expected = ["0.0000000000", "0.0000001000", "-12.5000000000", None]
    if as_scalar:
        assert [cast_value(value, pa.string()).as_py() for value in column] == expected
    else:
        assert cast_value(column, pa.string()).to_pylist() == expected
        assert cast_value(pa.chunked_array([column, column]), pa.string()).to_pylist() == expected * 2


@pytest.mark.parametrize("text", ["0x10", " 0XfF", "1_000"])
def test_a_text_is_a_whole_number_in_decimal_digits(text):
    with pytest.raises(ExpressionError, match="cannot be cast"):
        cast_value(pa.array(["1", text]), pa.int32())
    with pytest.raises(ExpressionError):
        parse_predicate(f"i = '{text}'", from_arrow(pa.schema([("i", pa.int32())])))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("x + 1", "2.25"), ("x - x", "0.00"), ("x + x", "2.50"), ("1 - x", "-0.25")],
)
def test_sums_of_the_widest_decimals(text, expected):
    table = pa.table({"x": pa.array([Decimal("1.25"), None], pa.decimal128(38, 2))})
    found = evaluate(parse_value(text, from_arrow(table.schema)), table).to_pylist()
    assert found == [Decimal(expected), None]
