from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import (
    And,
    Cast,
    Column,
    Comparison,
    ComparisonOperator,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_predicate, parse_value
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import type_of
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import DATE, DOUBLE, INTEGER, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, DecimalType

STAMPS = [dt.datetime(2013, 1, 1, 5), dt.datetime(2014, 1, 1), None, dt.datetime(1999, 12, 31)]
DATA = pa.table(
    {
        "a": pa.array([1, 2, None, -7], pa.int32()),
        "big": pa.array([1, 2**60, None, -7], pa.int64()),
        "x": [1.5, float("nan"), None, -0.0],
        "s": ["abc", "a%c", None, "it's"],
        "d": [dt.date(2013, 1, 1), dt.date(2014, 1, 1), None, dt.date(1999, 12, 31)],
        "t": pa.array(STAMPS, pa.timestamp("us", "UTC")),
        "n": pa.array(STAMPS, pa.timestamp("us")),
        "dec": pa.array([Decimal("1.50"), Decimal("2.25"), None, Decimal("-3.00")], pa.decimal128(10, 2)),
        "st": [{"x": 1, "Y z": "q"}, None, {"x": None, "Y z": None}, {"x": 4, "Y z": "w"}],
        "f": [True, False, None, True],
        "v": pa.nulls(4),
        "by": [b"a", b"\x1f", None, b"c"],
        "l": [[1], [2], None, []],
        "a.b": [1, 2, 3, 4],
    }
)
SCHEMA = from_arrow(DATA.schema)
T, F, N = True, False, None

CASES = [
    ("a > 1", [F, T, N, F]),
    ("A > 1.5", [F, T, N, F]),
    ("a = '2'", [F, T, N, F]),
    ("a = 5L or a = 2S", [F, T, N, F]),
    ("a > 9223372036854775808", [F, F, N, F]),
    ("x > 1", [T, T, N, F]),
    ("x <> 1", [T, T, N, T]),
    ("x = double('NaN')", [F, T, N, F]),
    ("x <= cast('NaN' as double)", [T, T, N, T]),
    ("cast('NaN' as double) > x", [T, F, N, T]),
    ("x = 0", [F, F, N, T]),
    ("isnan(x)", [F, T, F, F]),
    (r"s like 'a\\%c'", [F, T, N, F]),
    ("s like 'a!%c' escape '!'", [F, T, N, F]),
    ("s like 'a%'", [T, T, N, F]),
    ("s like 'a_c'", [T, T, N, F]),
    ("s not like 'a%'", [F, F, N, T]),
    (r"s = 'it\'s'", [F, F, N, T]),
    ("d >= '2013-01-01'", [T, T, N, F]),
    ("d = DATE '2014-1-1'", [F, T, N, F]),
    ("d in ('2014-01-01', '1999-12-31')", [F, T, N, T]),
    ("t > '2013-01-01'", [T, T, N, F]),
    ("t >= '2013-01-01T06:00:00+01:00'", [T, T, N, F]),
    ("t > TIMESTAMP '2013-01-01 05:00:00'", [F, T, N, F]),
    ("n = TIMESTAMP_NTZ '2014-01-01'", [F, T, N, F]),
    ("t > d", [T, F, N, F]),
    ("n = t", [T, T, N, T]),
    ("dec > 2", [F, T, N, F]),
    ("dec in (1.5, 2)", [T, F, N, F]),
    ("dec * 2 = 4.50", [F, T, N, F]),
    ("dec + a = 2.5", [T, F, N, F]),
    ("st.X = 1", [T, N, N, F]),
    ("st.`y z` = 'q'", [T, N, N, F]),
    ("`a.b` = 3", [F, F, T, F]),
    ("f", [T, F, N, T]),
    ("not f", [F, T, N, F]),
    ("! f", [F, T, N, F]),
    ("f is true", [T, F, F, T]),
    ("f is not false", [T, F, T, T]),
    ("f = (a > 1)", [F, F, N, F]),
    ("a between -10 and 1", [T, F, N, T]),
    ("a not between -10 and 1", [F, T, N, F]),
    ("a in (1, null)", [T, N, N, N]),
    ("a not in (1, null)", [F, N, N, N]),
    ("a not in (1, 2)", [F, F, N, T]),
    ("x in (1.5, 'NaN')", [T, T, N, F]),
    ("a in (a, 2)", [T, T, N, T]),
    ("a <=> null", [F, F, T, F]),
    ("a is distinct from 1", [F, T, T, T]),
    ("v = 1", [N, N, N, N]),
    ("v is null", [T, T, T, T]),
    ("a is not null", [T, T, F, T]),
    ("isnull(a) or isnotnull(a)", [T, T, T, T]),
    ("a % 2 = -1", [F, F, N, T]),
    ("x % 1 = 0.5", [T, F, N, F]),
    ("a / 2 = 0.5", [T, F, N, F]),
    ("-a = 7", [F, F, N, T]),
    ("year(d) = 2013 and month(t) = 1 and hour(n) = 5", [T, F, N, F]),
    ("length(s) = 3", [T, T, N, F]),
    ("upper(s) like 'A_C'", [T, T, N, F]),
    ("s || 'x' = concat('ab', 'cx')", [T, F, N, F]),
    ("substring(s, -2) = 'bc'", [T, F, N, F]),
    ("substr(s, 2, 1) = 'b'", [T, F, N, F]),
    ("substring(s, -5, 3) = 'a'", [T, T, N, F]),
    ("trim(concat(' ', s, ' ')) = 'abc'", [T, F, N, F]),
    ("coalesce(a, 0) = 0", [F, F, T, F]),
    ("nvl(s, 'none') = 'none'", [F, F, T, F]),
    ("abs(a) = 7", [F, F, N, T]),
    ("by = X'1F'", [F, T, N, F]),
    ("contains(s, 'b') and startswith(s, 'a') and endswith(s, 'c')", [T, F, N, F]),
    ("cast(a as string) = '2'", [F, T, N, F]),
    ("cast(t as date) = d", [T, T, N, T]),
    ("cast(dec as int) = -3", [F, F, N, T]),
    ("cast(dec as decimal(3,1)) = 2.3", [F, T, N, F]),
    ("cast(f as int) = 1", [T, F, N, T]),
    ("true", [T, T, T, T]),
    ("null", [N, N, N, N]),
    ("a = 1 -- a comment", [T, F, N, F]),
    ("a = 1 or a = 2 and f", [T, F, N, F]),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_meaning_and_rendering(text, expected):
    expression = parse_predicate(text, SCHEMA)
    assert evaluate(expression, DATA).to_pylist() == expected
    assert evaluate(expression, DATA.to_batches()[0]).to_pylist() == expected
    rendered = to_spark_sql(expression)
    again = parse_predicate(rendered, SCHEMA)
    assert repr(again) == repr(expression)  # NaN differs from itself
    assert to_spark_sql(again) == rendered


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a > 5; drop table x", "2 statements"),
        ("a > (select 1)", "subquery"),
        ("a in (select 1)", "subquery"),
        ("exists(select 1)", "subquery"),
        ("foo(a) = 1", "function foo is not supported"),
        ("rand() > 0.5", "not allowed"),
        ("current_date() = d", "present time"),
        ("count(*) > 1", "Count"),
        ("a rlike 'x'", "RegexpLike"),
        ("case when f then a end", "not a condition"),
        ("if(f, a)", "If"),
        ("case a when 'x' then f end", "'x' is not of type integer"),
        ("case when f then a else s end = 1", "have different types"),
        ("case when a then f end", "used as a condition"),
        ("a = ?", "parameter"),
        ("t.* = 1", "not allowed"),
        ("l[0] = 1", "Bracket"),
        ("(a, a) = (1, 1)", "Tuple"),
        ("nope = 1", "there is no nope"),
        ("st.nope = 1", "fields of st"),
        ("a.b.c = 1", "has no fields"),
        ("a = d", "cannot be compared"),
        ("s = 1", "cannot be compared"),
        ("st = 1", "cannot be compared"),
        ("l = 1", "cannot be compared"),
        ("t = 1", "cannot be compared"),
        ("f = 1", "cannot be compared"),
        ("a in ('x')", "'x' is not of type integer"),
        ("a = '5.5'", "not of type integer"),
        ("d = '2013-13-01'", "such as '2013-01-31'"),
        ("t = 'x'", "'x' is not of type timestamp"),
        ("a", "not a condition"),
        ("a and f", "used as a condition"),
        ("not a", "used as a condition"),
        ("s + 1 = 2", "not numeric"),
        ("dec / 2 > 1", "not supported on decimals"),
        ("a like '1'", "LIKE does not apply"),
        ("s like s", "constant pattern"),
        ("length(a) = 1", "must be a string"),
        ("hour(d) = 1", "must be a timestamp"),
        ("substring(s, a) = 'x'", "must be a constant"),
        ("coalesce(a, s) = 1", "have different types"),
        ("cast(st as string) = 'x'", "cannot be cast"),
        ("cast(a as decimal(50,0)) = 1", "not a type"),
        ("try_cast(s as int) = 1", "TRY_CAST"),
        ("TRY_CAST('x' AS DATE) = d", "TRY_CAST"),
        ("a + try_cast(1 as bigint) > 1", "TRY_CAST"),
        ("cast(a as array<int>) = 1", "is not supported"),
        ("a in ()", "at least one value"),
        ("s = 'it''s'", "are adjacent"),
        ("a >", "not valid Spark SQL"),
        ("'open", "not valid Spark SQL"),
        ("", "is empty"),
        ("select 1", "subquery"),
        ("drop table t", "not allowed"),
        (" " * 2_000_000, "too long"),
    ],
)
def test_refused(text, part):
    with pytest.raises(ExpressionError) as caught:
        parse_predicate(text, SCHEMA)
    error = caught.value
    assert part in str(error)
    assert error.problem
    assert error.cause
    assert error.fix


@pytest.mark.parametrize(
    "text",
    [
        "(" * 300 + "a > 1" + ")" * 300,
        "not " * 5000 + "f",
        "- " * 5000 + "a = 1",
        "a + " * 5000 + "1 > 1",
        "case when " * 1000,
        "coalesce(" * 1000 + "a" + ")" * 1000 + " = 1",
        "[" * 100_000,
    ],
    ids=range(7),
)
def test_depth_is_capped(text):
    with pytest.raises(ExpressionError):
        parse_predicate(text, SCHEMA)


def test_long_chains_are_fine():
    text = " and ".join(["a > 1"] * 3000)
    expression = parse_predicate(text, SCHEMA)
    assert isinstance(expression, And)
    assert len(expression.terms) == 3000
    assert evaluate(expression, DATA).to_pylist() == [F, T, N, F]
    values = ", ".join(str(i) for i in range(5000))
    assert evaluate(parse_predicate(f"a in ({values})", SCHEMA), DATA).to_pylist() == [T, T, N, F]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a + 2147483647 > 0", "does not fit"),
        ("big * 1000 > 0", "does not fit"),
        ("a / 0 = 1", "division by zero"),
        ("a % 0 = 1", "division by zero"),
        ("cast(x as int) = 1", "cannot be cast"),
        ("cast(s as int) = 1", "cannot be cast"),
    ],
)
def test_row_errors(text, part):
    with pytest.raises(ExpressionError, match=part):
        evaluate(parse_predicate(text, SCHEMA), DATA)


def test_bad_like_escape():
    with pytest.raises(ExpressionError, match="backslash"):
        evaluate(parse_predicate(r"s like 'a\\b'", SCHEMA), DATA)


def test_constants_take_the_columns_type():
    def literal(text):
        expression = parse_predicate(text, SCHEMA)
        assert isinstance(expression, Comparison)
        return expression.right

    assert literal("d = '2013-01-31'") == Literal(dt.date(2013, 1, 31), DATE)
    assert literal("t = '2013-01-31'") == Literal(dt.datetime(2013, 1, 31, tzinfo=dt.UTC), TIMESTAMP)
    assert literal("n = '2013-01-31 01:02:03.5'") == Literal(
        dt.datetime(2013, 1, 31, 1, 2, 3, 500000), TIMESTAMP_NTZ
    )
    assert literal("big = 5") == Literal(5, LONG)
    assert literal("x = 5") == Literal(5.0, DOUBLE)
    assert literal("a = 3000000000") == Literal(3000000000, LONG)
    assert literal("s = '5'") == Literal("5", STRING)
    assert literal("dec = '1.5'").value == Decimal("1.5")


def test_tree():
    expression = parse_predicate("not (a in (1, 2) or s like 'x%') and st.x is null", SCHEMA)
    assert expression == And(
        (
            Not(
                Or(
                    (
                        In(Column(("a",)), (Literal(1, INTEGER), Literal(2, INTEGER))),
                        Like(Column(("s",)), "x%"),
                    )
                )
            ),
            IsNull(Column(("st", "x"))),
        )
    )


def test_values_have_types():
    assert type_of(parse_value("a + big", SCHEMA), SCHEMA) == LONG
    assert type_of(parse_value("a / 2", SCHEMA), SCHEMA) == DOUBLE
    assert type_of(parse_value("cast(a as decimal(7,2))", SCHEMA), SCHEMA) == DecimalType(7, 2)
    assert parse_value("cast(a as date)", from_arrow(pa.schema([("a", pa.string())]))) == Cast(
        Column(("a",)), DATE
    )


def test_quoting_survives_anything():
    odd = "we`ird '\"\\\n\t;--"
    schema = from_arrow(pa.schema([(odd, pa.string())]))
    expression = Comparison(ComparisonOperator.EQ, Column((odd,)), Literal(odd + "\r\0%_", STRING))
    assert parse_predicate(to_spark_sql(expression), schema) == expression
