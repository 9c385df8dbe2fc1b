"""Predicates as tests on statistics, against the rows that the statistics were taken from."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Literal
from delta_core.expressions.bounds import ColumnStats, StatsColumns
from delta_core.expressions.columns import conjunction
from delta_core.expressions.evaluate import matches
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.skipping import MAX_LISTED_VALUES, may_match, partition_match
from delta_core.schema.arrow import from_arrow

ARROW = pa.schema(
    [
        ("p", pa.int32()),
        ("q", pa.string()),
        ("none", pa.null()),
        ("a", pa.int32()),
        ("b", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("f", pa.bool_()),
    ]
)
SCHEMA = from_arrow(ARROW)
PARTITIONED = ["p", "q", "none"]
NAN = math.nan

# By file: rows of (a, b, x, s, f), and the values of p and q.
FILES = [
    ((1, "b"), [(1, 10, 0.5, "abc", True), (2, 20, 1.5, "abx", False)]),
    ((5, "a"), [(4, 5, NAN, "b", None), (6, 5, 2.5, "b", None)]),
    ((None, None), [(7, None, -1.0, "5", True), (7, None, -1.0, "5", True)]),
    ((9, "c"), [(None, None, None, None, False), (None, 3, None, None, False)]),
]
TABLES = [
    pa.Table.from_pylist(
        [{"p": p, "q": q} | dict(zip("abxsf", row, strict=True)) for row in rows], schema=ARROW
    )
    for (p, q), rows in FILES
]


def column_stats(name: str) -> ColumnStats:
    kind = ARROW.field(name).type
    lows, highs, nulls = [], [], []
    for table in TABLES:
        column = table.column(name)
        has_nan = pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py()
        found = pc.min_max(column).as_py()
        lows.append(found["min"])
        highs.append(NAN if has_nan else found["max"])
        nulls.append(column.null_count)
    if pa.types.is_boolean(kind):
        return ColumnStats(null_count=pa.array(nulls))
    return ColumnStats(
        minimum=pa.array(lows, kind), maximum=pa.array(highs, kind), null_count=pa.array(nulls)
    )


STATS = StatsColumns(
    num_files=len(TABLES),
    num_records=pa.array([table.num_rows for table in TABLES]),
    columns={(name,): column_stats(name) for name in "abxsf"},
    partitions=pa.table(
        {name: [table.column(name)[0].as_py() for table in TABLES] for name in PARTITIONED}
    ).cast(pa.schema([ARROW.field(name) for name in PARTITIONED])),
)


def kept(text: str, stats: StatsColumns = STATS) -> list[int]:
    return [int(at) for at in np.flatnonzero(may_match(parse_predicate(text, SCHEMA), stats))]


def holding_a_match(text: str) -> list[int]:
    predicate = parse_predicate(text, SCHEMA)
    return [at for at, table in enumerate(TABLES) if pc.any(matches(predicate, table)).as_py()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A partition value beside a column of the data.
        ("p > a", [1]),
        ("a = p", [0, 1]),
        ("p + 1 <= a", [0, 1]),
        ("p + 1 < a", []),
        ("p is null and a = 7", [2]),
        ("p <=> a", [0, 1]),
        ("not (p <=> b)", [0, 3]),
        ("upper(q) = 'B' and a > 0", [0]),
        ("q is not null or a = 7", [0, 1, 2, 3]),
        ("coalesce(q, 'z') = 'z' or s = 'abx'", [0, 2]),
        # Null or not, of what is not null where its operands are.
        ("(a > 1) is null", [3]),
        ("(not (a > 1)) is not null", [0, 1, 2]),
        ("(s like 'a%') is null", [3]),
        ("(a <=> 1) is null", [0, 1, 2, 3]),
        ("(a is null) is null", [0, 1, 2, 3]),
        ("coalesce(a, b) is null", [0, 1, 2, 3]),
        ("coalesce(a, b) is not null", [0, 1, 2, 3]),
        ("isnan(x) <=> null", [0, 1, 2, 3]),
        ("(a > 1 and f) is not null", [0, 1, 2, 3]),
        # Products, whichever side the constant is on.
        ("2 * a > 10", [1, 2]),
        ("a * 2 > 10", [1, 2]),
        ("-2 * a > -5", [0]),
        ("a * -2 > -5", [0]),
        ("a * b > 1000", [0, 1]),
        ("a * null > 1", []),
        # Of one value, where the function has no order.
        ("CAST(a AS STRING) = '7'", [0, 1, 2]),
        ("CAST(a AS STRING) = '8'", [0, 1]),
        ("CAST(s AS INT) = 5", [0, 1, 2]),
        ("upper(s) = 'B'", [0, 1]),
        ("upper(coalesce(s, 'x')) = 'X'", [0, 1, 2, 3]),
        ("CAST((a > 1) AS INT) = 1", [0, 1, 2]),
        ("a % 2 = 0", [0, 1]),
        # Of floats only what NaN leaves.
        ("CAST(x AS FLOAT) > 2", [1]),
        ("CAST(x AS FLOAT) < 0", [2]),
        ("CAST(x AS INT) > 100", [0, 1, 2]),
        ("coalesce(x, 1e0) > 100", [0, 1, 2, 3]),
        ("coalesce(a, 0) > 6", [2]),
        ("coalesce(a, b, 0) = 15", [0]),
        ("coalesce(null, none) > 1", []),
        ("isnan(x)", [1]),
        ("isnan(CAST('NaN' AS DOUBLE))", [0, 1, 2, 3]),
        ("isnan(1.5e0)", []),
        # Texts.
        ("s not like 'a%x'", [0, 1, 2]),
        ("s not like 'ab%'", [1, 2]),
        ("s like 'abc'", [0]),
        ("s not like 'b'", [0, 2]),
        # Neither true nor false.
        ("none", []),
        ("not none", []),
        ("none = 1 or a = 1", [0]),
        ("null", []),
    ],
)
def test_kept_files(text, expected):
    assert kept(text) == expected
    try:
        needed = holding_a_match(text)
    except ExpressionError:
        # A row that the expression fails on: what is kept must hold it.
        assert any(raises(text, TABLES[at]) for at in expected)
    else:
        assert set(needed) <= set(expected)


def raises(text: str, table: pa.Table) -> bool:
    try:
        matches(parse_predicate(text, SCHEMA), table)
    except ExpressionError:
        return True
    return False


def test_a_long_list_is_one_range_but_for_floats():
    numbers = range(100, 100 + 2 * MAX_LISTED_VALUES)
    assert kept(f"a in ({', '.join(str(n) for n in numbers)})") == []
    assert kept(f"a in (7, {', '.join(str(n) for n in numbers)})") == [2]
    # NaN has no place in a range.
    assert kept(f"x in ({', '.join(f'{n}e0' for n in numbers)})") == [0, 1, 2]
    # Numbers beyond the column's type are of another one.
    assert kept(f"a in (3000000000, {', '.join(str(n) for n in numbers)})") == [0, 1, 2]
    assert kept(f"a not in ({', '.join(str(n) for n in numbers)})") == [0, 1, 2]


def test_a_pattern_that_ends_in_its_escape_fails_where_a_row_may_show_it():
    text = r"s like 'abc\\'"
    assert kept(text) == [0]
    with pytest.raises(ExpressionError, match="backslash"):
        matches(parse_predicate(text, SCHEMA), TABLES[0])


@pytest.mark.parametrize(
    "text", ["a = 1", "a is null", "a is not null", "s like 'a%'", "isnan(x)", "a + b > 3", "p > a", "f"]
)
def test_without_statistics_every_file_is_kept(text):
    nothing = StatsColumns(num_files=3)
    assert kept(text, nothing) == [0, 1, 2]
    halves = StatsColumns(num_files=3, columns={(name,): ColumnStats() for name in "abxsf"})
    assert kept(text, halves) == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p > 4", [1, 3]),
        ("p <=> null", [2]),
        ("p % 2 = 1 and q < 'c'", [0, 1]),
        ("none is null", [0, 1, 2, 3]),
        ("none = 1", []),
        ("none", []),
        ("not none", []),
        ("true", [0, 1, 2, 3]),
        ("false or null", []),
    ],
)
def test_partition_values_alone(text, expected):
    mask = partition_match(parse_predicate(text, SCHEMA), STATS.partitions)
    assert [int(at) for at in np.flatnonzero(mask)] == expected


def test_an_error_of_one_value_is_raised() -> None:
    with pytest.raises(ExpressionError, match="division by zero"):
        partition_match(parse_predicate("10 / (p - 5) > 0", SCHEMA), STATS.partitions)


def test_a_false_term_prunes_every_file():
    predicate = conjunction([parse_predicate("a > 0", SCHEMA), Literal(False)])
    assert not may_match(predicate, STATS).any()
