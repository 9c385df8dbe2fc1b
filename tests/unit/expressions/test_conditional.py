"""CASE and its relatives, greatest, least and rounding: against DuckDB, and in three truth values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.bounds import ColumnStats, StatsColumns
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_predicate, parse_value
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.skipping import may_match
from delta_core.expressions.typing import type_of
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import DATE, DOUBLE, INTEGER, LONG, STRING, TIMESTAMP, VOID, DecimalType

ROWS = pa.table(
    {
        "i": pa.array([0, 1, -7, 15, None, 2], pa.int32()),
        "l": pa.array([10, 0, None, 25, 5, -25], pa.int64()),
        "x": pa.array([0.5, -1.5, 2.675, None, 1e15, 2.5]),
        "y": pa.array([float("nan"), 1.0, float("inf"), None, -0.0, 3.0]),
        "c": pa.array(
            [Decimal(t) for t in ("1.25", "-1.25", "99999999.99", "0.05", "-0.05", "2.50")],
            pa.decimal128(10, 2),
        ),
        "s": ["a", "B", None, "", "ab", "z"],
        "d": pa.array([dt.date(2020, 1, 1), None, dt.date(1969, 12, 31), *[dt.date(2024, 2, 29)] * 3]),
        "t": pa.array(
            [dt.datetime(2020, 1, 1, 5), None, None, dt.datetime(1960, 1, 1), None, None],
            pa.timestamp("us", "UTC"),
        ),
        "f": [True, False, None, True, False, None],
        "arr": pa.array([[1, 2], [], None, [None], [3], [4, 5, 6]], pa.list_(pa.int64())),
        "m": pa.array([[("a", 1)], [], None, [], [], []], pa.map_(pa.string(), pa.int64())),
    }
)
SCHEMA = from_arrow(ROWS.schema)


def values_of(text: str, data: pa.Table | pa.RecordBatch = ROWS) -> list[object]:
    return evaluate(parse_value(text, SCHEMA), data).to_pylist()


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'")
        opened.register("rows_of_test", ROWS)
        yield opened


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("CASE WHEN f THEN i ELSE l END", None),
        ("CASE WHEN f THEN 'yes' WHEN NOT f THEN 'no' END", None),
        ("CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' WHEN i = 0 THEN 'z' ELSE '?' END", None),
        ("CASE i WHEN 1 THEN s WHEN 15 THEN 'fifteen' ELSE upper(s) END", None),
        ("CASE i WHEN NULL THEN 1 ELSE 0 END", None),
        ("CASE WHEN l <> 0 THEN 100 % l ELSE -1 END", None),
        ("CASE WHEN f THEN NULL ELSE x END", None),
        ("CASE WHEN f THEN c ELSE 0 END", None),
        ("CASE WHEN f THEN CASE WHEN i = 0 THEN 'a' ELSE 'b' END ELSE 'c' END", None),
        ("CASE WHEN NULL THEN 1 END", None),
        ("CASE WHEN true THEN 1 WHEN l / 0 > 1 THEN 2 END", "1"),
        ("IF(f, i, -1)", "CASE WHEN f THEN i ELSE -1 END"),
        ("IF(l = 0, NULL, 10 / l)", "10 / nullif(l, 0)"),
        ("nullif(l, 0)", None),
        ("nullif(s, 'a')", None),
        ("nvl2(t, 'x', s)", "CASE WHEN t IS NOT NULL THEN 'x' ELSE s END"),
        ("greatest(i, l)", None),
        ("least(i, l, 3)", None),
        ("greatest(s, 'b')", None),
        ("least(d, DATE '2000-01-01')", None),
        ("least(t, TIMESTAMP '2000-01-01 00:00:00')", "least(t, TIMESTAMPTZ '2000-01-01 00:00:00+00')"),
        ("greatest(t, TIMESTAMP '2000-01-01 00:00:00')", "greatest(t, TIMESTAMPTZ '2000-01-01 00:00:00+00')"),
        ("greatest(x, NULL)", "x"),
        ("floor(x)", None),
        ("ceil(c)", None),
        ("ceiling(-x)", "ceil(-x)"),
        ("floor(i)", "i"),
        ("size(arr)", "len(arr)"),
        ("cardinality(m)", "cardinality(m)"),
        ("round(c)", "round(c)"),
        ("round(c, 1)", "round(c, 1)"),
        ("round(i, -1)", "round(i, -1)"),
    ],
)
def test_same_as_duckdb(connection, ours, theirs):
    rows = ROWS
    connection.register("rows_of_case", rows)
    found = connection.execute(f"SELECT {theirs or ours} FROM rows_of_case").fetchall()
    expected = [float(v[0]) if isinstance(v[0], Decimal) else v[0] for v in found]
    ours_found = [float(v) if isinstance(v, Decimal) else v for v in values_of(ours, rows)]
    assert ours_found == expected
    # Batch by batch, and empty, it is the same.
    batches = rows.to_batches(max_chunksize=4)
    assert [
        float(v) if isinstance(v, Decimal) else v for b in batches for v in values_of(ours, b)
    ] == expected
    assert values_of(ours, rows.slice(0, 0)) == []


@pytest.mark.parametrize(
    "text",
    [
        "CASE WHEN f THEN i ELSE l END = 1",
        "CASE i WHEN 1 THEN true WHEN 2 THEN f END",
        "IF(f, c, 0.5) > 1",
        "nullif(x, 1.5) > 0",
        "nvl2(s, d, t) IS NULL",
        "greatest(i, l, 3) <= least(x, 2)",
        "round(c, 1) = 1.3 AND round(x) > 0 AND floor(x) < ceil(c)",
        "size(arr) > size(m)",
    ],
)
def test_text_gives_the_same_expression_again(text):
    expression = parse_predicate(text, SCHEMA)
    again = parse_predicate(to_spark_sql(expression), SCHEMA)
    assert to_spark_sql(again) == to_spark_sql(expression)
    assert evaluate(again, ROWS).to_pylist() == evaluate(expression, ROWS).to_pylist()


@pytest.mark.parametrize("condition", ["true", "false", "CAST(NULL AS BOOLEAN)", "NULL"])
@pytest.mark.parametrize("first", ["1", "NULL"])
@pytest.mark.parametrize("second", ["2", "NULL"])
def test_three_truth_values(condition, first, second):
    known = {"1": 1, "2": 2, "NULL": None}
    expected = known[first] if condition == "true" else known[second]
    for text in (
        f"CASE WHEN {condition} THEN {first} ELSE {second} END",
        f"IF({condition}, {first}, {second})",
    ):
        assert values_of(text) == [expected] * ROWS.num_rows


@pytest.mark.parametrize("left", ["1", "2", "NULL"])
@pytest.mark.parametrize("right", ["1", "2", "NULL"])
def test_nulls_of_the_relatives(left, right):
    a, b = ({"1": 1, "2": 2, "NULL": None}[text] for text in (left, right))
    present = [value for value in (a, b) if value is not None]
    expected = {
        f"nullif({left}, {right})": None if a == b else a,
        f"greatest({left}, {right})": max(present, default=None),
        f"least({left}, {right})": min(present, default=None),
        f"nvl2({left}, {right}, 7)": b if a is not None else 7,
    }
    for text, value in expected.items():
        assert values_of(text) == [value] * ROWS.num_rows, text


def test_nan_is_the_greatest():
    assert [v is not None and math.isnan(v) for v in values_of("greatest(y, 5)")] == [True] + [False] * 5
    assert values_of("least(y, 5)") == [5.0, 1.0, 5.0, 5.0, -0.0, 3.0]
    assert math.isnan(values_of("least(y, NULL)")[0])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("IF(f, 1, 2)", INTEGER),
        ("IF(f, i, l)", LONG),
        ("IF(f, i, 1.5)", DecimalType(11, 1)),
        ("IF(f, c, l)", DecimalType(22, 2)),
        ("IF(f, c, x)", DOUBLE),
        ("IF(f, d, t)", TIMESTAMP),
        ("IF(f, d, '2020-01-01')", DATE),
        ("IF(f, 'a', s)", STRING),
        ("IF(f, NULL, NULL)", VOID),
        ("greatest(i, 2.5, l)", DecimalType(21, 1)),
        ("floor(x)", LONG),
        ("ceil(c)", DecimalType(9, 0)),
        ("round(c, 1)", DecimalType(10, 1)),
        ("round(c, 5)", DecimalType(11, 2)),
        ("round(c, -12)", DecimalType(13, 0)),
        ("round(x, 1)", DOUBLE),
    ],
)
def test_types(text, kind):
    expression = parse_value(text, SCHEMA)
    assert type_of(expression, SCHEMA) == kind
    evaluate(expression, ROWS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Half up by the digits as written, as Spark's round: 2.675 is a little less as a binary number.
        ("round(x, 2)", [0.5, -1.5, 2.68, None, 1e15, 2.5]),
        ("round(x)", [1.0, -2.0, 3.0, None, 1e15, 3.0]),
        ("round(x, -1)", [0.0, 0.0, 0.0, None, 1e15, 0.0]),
        ("round(c, 1)", [Decimal(t) for t in ("1.3", "-1.3", "100000000.0", "0.1", "-0.1", "2.5")]),
        ("round(i, -1)", [0, 0, -10, 20, None, 0]),
        ("round(i, -50)", [0, 0, 0, 0, None, 0]),
        ("round(c, -20)", [Decimal(0)] * 6),
        ("round(i, NULL)", [None] * 6),
        ("round(NULL)", [None] * 6),
    ],
)
def test_rounding(text, expected):
    # As texts, since -0.0 equals 0.0. What Spark 4.2 gives.
    assert list(map(str, values_of(text))) == list(map(str, expected))


def test_rounding_leaves_nan_and_infinity():
    found = values_of("round(y, 1)")
    assert math.isnan(found[0])
    assert str(found[1:]) == "[1.0, inf, None, 0.0, 3.0]"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("floor(y)", "floor cannot be computed"),
        ("ceil(y)", "ceil cannot be computed"),
        ("round(CAST(127 AS TINYINT), -1)", "round cannot be computed"),
        ("round(x, i)", "must be a constant"),
        ("greatest(i)", "arguments of greatest cannot be 1"),
        ("greatest(f, true)", "does not apply to values of type boolean"),
        ("greatest(i, s)", "have different types"),
        ("IF(f, d, i)", "have different types"),
        ("size(s)", "must be an array or map"),
        ("CASE WHEN i = 0 THEN 10 / i ELSE 0 END", "division by zero"),
        ("nullif(i)", "The function nullif is not supported"),
    ],
)
def test_what_is_refused(text, part):
    with pytest.raises(ExpressionError) as caught:
        values_of(text)
    assert part in str(caught.value)


def test_files_are_left_out_only_where_partitions_decide():
    partitions = pa.table({"i": pa.array([1, 2, None], pa.int32())})
    stats = StatsColumns(
        num_files=3,
        num_records=pa.array([5, 5, 5], pa.int64()),
        partitions=partitions,
        columns={
            ("l",): ColumnStats(
                minimum=pa.array([1, 1, 1]), maximum=pa.array([2, 2, 2]), null_count=pa.array([0, 0, 0])
            )
        },
    )
    decided = may_match(parse_predicate("IF(i = 1, 'a', 'b') = 'a'", SCHEMA), stats)
    assert decided.tolist() == [True, False, False]
    for text in (
        "IF(l > 100, true, false)",
        "greatest(l, 3) = 9",
        "nullif(l, 1) IS NULL",
        "round(l, -1) = 5",
    ):
        assert may_match(parse_predicate(text, SCHEMA), stats).tolist() == [True] * 3, text
    assert np.asarray(may_match(parse_predicate("greatest(l, NULL) IS NULL", SCHEMA), stats)).all()
