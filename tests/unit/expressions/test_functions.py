"""Functions against DuckDB, where it has one that means the same, and against written-down values."""

from __future__ import annotations

import datetime as dt

import duckdb
import pyarrow as pa
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_predicate, parse_value
from delta_core.expressions.render import to_spark_sql
from delta_core.schema.arrow import from_arrow

UTC = dt.UTC
ROWS = pa.table(
    {
        "t": pa.array(
            [
                dt.datetime(1950, 3, 4, 5, 6, 7, 999999, tzinfo=UTC),
                dt.datetime(2020, 2, 29, 23, 59, 59, 1, tzinfo=UTC),
                dt.datetime(2021, 1, 3, tzinfo=UTC),
                dt.datetime(1, 1, 1, tzinfo=UTC),
                dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
                None,
            ],
            pa.timestamp("us", "UTC"),
        ),
        "d": pa.array(
            [dt.date(1969, 12, 31), dt.date(2020, 2, 1), dt.date(2024, 12, 30), None, dt.date(1, 1, 5), None],
            pa.date32(),
        ),
        "s": ["", " a b ", "ABCÄÖ", None, "abc", "\U0001f600x"],
        "i": pa.array([0, 1, -1, 3, None, 2], pa.int32()),
    }
)
SCHEMA = from_arrow(ROWS.schema)


def values_of(text: str) -> list[object]:
    return evaluate(parse_value(text, SCHEMA), ROWS).to_pylist()


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'")
        opened.register("rows_of_test", ROWS)
        yield opened


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        *((f"{part}({c})", f"{part}({c})") for c in "td" for part in ("year", "month", "day", "quarter")),
        ("hour(t)", "hour(t)"),
        ("minute(t)", "minute(t)"),
        ("second(t)", "second(t)"),
        ("dayofyear(d)", "dayofyear(d)"),
        ("weekofyear(t)", "weekofyear(t)"),
        ("dayofweek(d)", "dayofweek(d) + 1"),
        ("weekday(d)", "isodow(d) - 1"),
        ("extract(week from d)", "weekofyear(d)"),
        ("date_part('DOY', t)", "dayofyear(t)"),
        *(
            (f"date_trunc('{unit}', t)", f"date_trunc('{unit}', t)")
            for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
            if unit != "week"
        ),
        *((f"trunc(d, '{unit}')", f"date_trunc('{unit}', d)::DATE") for unit in ("year", "month", "quarter")),
        ("trunc(d, 'WEEK')", "date_trunc('week', d)::DATE"),
        ("date_format(t, 'yyyy-MM-dd HH:mm:ss')", "strftime(t, '%Y-%m-%d %H:%M:%S')"),
        ("date_format(d, \"yyyyMM'T'\")", "strftime(d, '%Y%mT')"),
        ("date_add(d, i)", "d + i"),
        ("d - 3", "d - 3"),
        ("2 + d", "d + 2"),
        ("datediff(t, d)", "date_diff('day', d, t::DATE)"),
        ("last_day(d)", "last_day(d)"),
        ("left(s, 2)", "left(s, 2)"),
        ("right(s, 2)", "right(s, 2)"),
        ("ltrim(s)", "ltrim(s)"),
        ("rtrim(s)", "rtrim(s)"),
        ("s ilike '%B%'", "s ilike '%B%'"),
        ("s like any ('a%', '%b ')", "s like 'a%' or s like '%b '"),
        ("s like all ('a%', '%c')", "s like 'a%' and s like '%c'"),
        ("s is distinct from 'abc'", "s is distinct from 'abc'"),
    ],
)
def test_same_as_duckdb(connection, ours, theirs):
    found = connection.execute(f"SELECT {theirs} FROM rows_of_test").fetchall()
    assert values_of(ours) == [row[0] for row in found]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("date_trunc('WEEK', TIMESTAMP '2024-02-29 12:00:00')", dt.datetime(2024, 2, 26, tzinfo=UTC)),
        ("date_trunc('mm', DATE '2024-02-29')", dt.datetime(2024, 2, 1, tzinfo=UTC)),
        ("left('abc', 0)", ""),
        ("right('abc', -1)", ""),
        ("right('abc', 9)", "abc"),
        ("left(null, 2)", None),
        ("startswith('abc', null)", None),
        ("startswith(null, 'a')", None),
        ("date_add(null, 2)", None),
        ("date_format(null, 'yyyy')", None),
        ("equal_null(null, null)", True),
        ("DATE '2024-01-31' + INTERVAL 1 MONTH", dt.date(2024, 2, 29)),
        ("DATE '2024-02-29' - INTERVAL 1 YEAR", dt.date(2023, 2, 28)),
        ("INTERVAL 1 WEEK + DATE '2024-02-29'", dt.date(2024, 3, 7)),
        ("DATE '2024-02-29' + INTERVAL '2' HOURS", dt.datetime(2024, 2, 29, 2, tzinfo=UTC)),
        (
            "TIMESTAMP '2024-02-29 00:00:00' - INTERVAL 1 DAY - INTERVAL 30 MINUTES",
            dt.datetime(2024, 2, 27, 23, 30, tzinfo=UTC),
        ),
        ("TIMESTAMP_NTZ '2024-12-31 00:00:00' + INTERVAL 3 MONTHS", dt.datetime(2025, 3, 31)),
    ],
)
def test_values(text, value):
    assert values_of(text) == [value] * ROWS.num_rows


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("date_trunc('DECADE', t) = t", "date_trunc does not support 'DECADE'"),
        ("trunc(d, 'DAY') = d", "trunc does not support 'DAY'"),
        ("date_trunc(s, t) = t", "must be a constant"),
        ("date_format(t, 'EEEE') = 'Monday'", "date_format does not support 'EEEE'"),
        ("date_format(t, 'yy') = '20'", "date_format does not support 'yy'"),
        ("date_format(d, '-') = '-'", "date_format does not support '-'"),
        ("left(s, i) = 'a'", "must be a constant"),
        ("d + 1.5 = d", "not numeric"),
        ("i - d = d", "not numeric"),
        ("t + INTERVAL 1 DAY > t", "not added to a constant"),
        ("d > DATE '2024-01-01' + INTERVAL '1 2' DAY TO HOUR", "is not supported"),
        ("d > DATE '2024-01-01' + INTERVAL 9999 YEARS", "is not supported"),
        ("extract(second from t) = 1", "cannot be extracted"),
        ("d > INTERVAL 1 DAY - DATE '2024-01-01'", "not allowed"),
    ],
)
def test_refused(text, part):
    with pytest.raises(ExpressionError) as caught:
        parse_predicate(text, SCHEMA)
    assert part in str(caught.value)


def test_years_that_a_pattern_has_no_room_for_are_refused_at_the_row():
    far = pa.table({"d": pa.array([3_000_000], pa.int32()).cast(pa.date32())})
    expression = parse_value("date_format(d, 'yyyy')", from_arrow(far.schema))
    with pytest.raises(ExpressionError, match="9999"):
        evaluate(expression, far)


@pytest.mark.parametrize(
    "text",
    ["date_trunc('DAY', t)", "date_format(d, 'yyyy-MM')", "d + 1", "right(s, 2)", "extract(year from t)"],
)
def test_rendered_text_parses_back(text):
    once = parse_value(text, SCHEMA)
    assert parse_value(to_spark_sql(once), SCHEMA) == once
