"""Predicates on Spark have the values that delta_core's evaluation gives, in whatever session."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Expression
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_value
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import StructType
from spark_jobs.expressions.predicates import to_column
from spark_jobs.schema import to_spark
from tests.support.hostile_sessions import HOSTILE, set_so
from tests.support.skipping_predicates import random_predicate
from tests.support.skipping_tables import random_table
from tests.support.soak import SAMPLE_SEED, rounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PER_TABLE = 20
SESSIONS = {
    "in ANSI mode": {**HOSTILE["New York"], **HOSTILE["another notation"]},
    "outside of it": {**HOSTILE["Kolkata, timestamps without a zone"], **HOSTILE["no ANSI"]},
}

UTC = dt.UTC
DATA = pa.table(
    {
        "i": pa.array([1, -7, 0, None, 2147483647], pa.int32()),
        "b": pa.array([1, -7, 0, None, 9], pa.int64()),
        "f": pa.array([1.5, -0.0, math.nan, None, 0.1], pa.float32()),
        "g": pa.array([1e20, -0.0, math.nan, None, -2.5], pa.float64()),
        "x": pa.array(["1.25", "-0.0000000001", "0", None, "99.9999999999"], pa.string()).cast(
            pa.decimal128(20, 10)
        ),
        "y": pa.array(["1.25", "-2.5", "0", None, "99999999999999999999999999.5"], pa.string()).cast(
            pa.decimal128(38, 10)
        ),
        "z": pa.array(["1", "-2", "0", None, "12345678901234567890123456789012345678"], pa.string()).cast(
            pa.decimal128(38, 0)
        ),
        "s": pa.array(["it's", "a\\b%", "12", None, " ÄÖ "]),
        "h": pa.array(["12", "-3", "0", None, "7"]),
        "t": pa.array(
            [
                dt.datetime(2024, 1, 1, 2, 30, 15, 123456, tzinfo=UTC),
                dt.datetime(1200, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
                dt.datetime(2011, 12, 30, 1, tzinfo=UTC),
                None,
                dt.datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
            ],
            pa.timestamp("us", "UTC"),
        ),
        "n": pa.array(
            [
                dt.datetime(2024, 3, 10, 2, 30),
                dt.datetime(1, 1, 1),
                dt.datetime(2011, 12, 30, 1),
                None,
                dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
            ],
            pa.timestamp("us"),
        ),
        "d": pa.array(
            [dt.date(2024, 1, 1), dt.date(1200, 2, 28), dt.date(2011, 12, 30), None, dt.date(1969, 12, 31)]
        ),
        "o": pa.array([True, False, True, None, False]),
        "v": pa.array([b"\x00\xff", b"", b"abc", None, b"\x00"]),
        "l": pa.array([[1, 2], [], [None], None, [3]], pa.list_(pa.int64())),
        "r": pa.array([{"in": "a"}, {"in": None}, None, {"in": "it's"}, {"in": "b"}]),
    }
)
SCHEMA = from_arrow(DATA.schema)
VALUES = (
    "i + 0 - b * 2", "b / 4", "i % 3", "b % -1", "g / 3", "g % 2", "f + f", "f * 2.5", "-b", "0 - g",
    "x + x", "x - 1", "x * 3", "x * x", "i * x", "y + 1", "z - z",
    "x * CAST(CASE WHEN b < 9 THEN y END AS DECIMAL(12,4)) < 3",
    "i = 1L", "i < 1.5", "b = x", "x > y", "y > 0.00000000001", "z > x", "z = y", "z <=> z", "z <> x",
    "z <= y",
    "g > 5", "g = CAST('NaN' AS DOUBLE)", "f = 0.1", "f = CAST(0.1 AS FLOAT)", "g = 0", "g <=> NULL",
    "g IN (0.0, CAST('NaN' AS DOUBLE), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", "i IN (1, 2.0, NULL)",
    "z NOT IN (1, 0.5)", "f IN (1.5)", "d IN (DATE '2024-01-01', TIMESTAMP '2011-12-30 00:00:00')",
    "CAST(g AS FLOAT)", "CAST(i AS STRING)", "CAST(x AS STRING)", "CAST(y AS STRING)", "CAST(d AS STRING)",
    "CAST(o AS STRING)", "CAST(h AS INT)", "CAST(h AS DOUBLE)", "CAST(h AS DECIMAL(10,2))",
    "CAST(x AS DECIMAL(8,1))", "CAST(x AS INT)", "CAST(x AS DOUBLE)", "CAST(o AS INT)", "CAST(b AS BOOLEAN)",
    "CAST(CASE WHEN g > -9 AND g < 9 THEN g END AS INT)", "CAST(CASE WHEN g < 9 THEN g END AS DECIMAL(9,3))",
    "CAST(i AS DECIMAL(20,5))", "CAST(s AS BINARY) = X'3132'", "v > X'00'", "length(v)",
    "CAST(t AS DATE)", "CAST(t AS TIMESTAMP_NTZ)", "CAST(n AS TIMESTAMP)", "CAST(d AS TIMESTAMP)",
    "CAST(d AS TIMESTAMP_NTZ)", "CAST(n AS DATE)", "t = n", "t > d", "n >= d", "t < '2024-01-01'",
    "n < '2024-03-10 02:30:00'", "t = TIMESTAMP '2011-12-30 02:00:00+01:00'", "d = '2024-01-01'",
    *(f"{name}({column})" for name in ("year", "quarter", "month", "weekofyear", "day", "dayofyear",
      "dayofweek", "weekday") for column in "tnd"),
    *(f"{name}({column})" for name in ("hour", "minute", "second") for column in "tn"),
    *(f"date_trunc('{unit}', {column})" for unit in ("year", "quarter", "month", "week", "day", "hour",
      "minute", "second", "millisecond", "microsecond") for column in "tnd"),
    *(f"trunc({column}, '{unit}')" for unit in ("yy", "QUARTER", "mon", "week") for column in "tnd"),
    *(f"date_format({column}, 'yyyyMMdd HH:mm:ss \\'o%T\\'')" for column in "tnd"),
    "date_add(d, 3)", "date_sub(t, 3)", "d + 1", "d - i % 5", "datediff(t, d)", "datediff(n, t)",
    "last_day(t)",
    "last_day(n)", "extract(YEAR FROM t)", "date_part('hour', n)",
    "abs(b)", "abs(g)", "abs(x)", "round(g, 1)", "round(f)", "round(x, 2)", "round(x, -1)", "round(b, -1)",
    "round(i, 2)", "floor(x)", "ceil(x)", "floor(CASE WHEN g < 9 THEN g END)",
    "ceil(CASE WHEN f < 9 THEN f END)",
    "floor(i)", "isnan(f)", "isnan(g)", "size(l)", "size(l) IS NULL",
    "lower(s)", "upper(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "length(s)", "substring(s, 2)",
    "substring(s, 0, 2)", "substring(s, -3, 2)", "left(s, 2)", "right(s, 2)", "left(s, -1)", "s || 'x'",
    "concat(s, NULL)", "startswith(s, 'it')", "endswith(s, s)", "contains(s, '\\\\')",
    "s LIKE 'a\\\\\\\\b\\\\%'",
    "s LIKE '_t%'", "s ILIKE '%äö%'", "s = 'it\\'s'", "s = 'a\\\\b%'", "r.in = 'it\\'s'", "r.in IS NULL",
    "r IS NULL", "coalesce(i, 5)", "coalesce(f, 1.5)", "coalesce(x, b)", "nullif(i, 0)",
    "nvl2(i, s, 'none')",
    "CASE WHEN i = 0 THEN 1 WHEN b > 0 THEN 5 / i ELSE x END", "IF(o, t, d)", "greatest(i, b, 3)",
    "least(g, f)", "greatest(g, 1)", "greatest(s, h)", "CASE s WHEN 'a' THEN 1 ELSE NULL END",
    "NOT (i = 1 AND o)", "o OR NULL", "NULL AND o", "o IS TRUE", "s <=> NULL", "NULL = i", "i + NULL",
    "abs(NULL)", "i BETWEEN 0 AND 1.5", "t BETWEEN DATE '2011-12-30' AND '2024-01-01 02:30:15.123456'",
)  # fmt: skip
FAILING = (
    "i + 1 > 0",
    "abs(i - 2147483647 - 2) > 0",
    "CAST(b + 2147483647 AS INT) = 1",
    "1 / b > 0",
    "b % (b - b) = 0",
    "CAST(s AS INT) = 1",
    "CAST(g AS INT) = 1",
    "CAST(x AS DECIMAL(4,3)) > 0",
    "floor(g) = 1",
)


def read(spark: SparkSession, data: pa.Table, schema: StructType, folder: Path) -> DataFrame:
    """The rows from a file, in their order."""
    folder.mkdir(exist_ok=True)
    pq.write_table(data, folder / "rows.parquet")
    reader = spark.read.schema(to_spark(schema)).option("datetimeRebaseMode", "CORRECTED")
    return reader.parquet(f"file://{folder}/rows.parquet").coalesce(1)


def values(frame: DataFrame, expressions: Sequence[Expression], schema: StructType) -> list[list[Any]]:
    columns = [to_column(expression, schema).alias(f"v{at}") for at, expression in enumerate(expressions)]
    found = frame.select(*columns).toArrow()
    return [found.column(at).to_pylist() for at in range(len(expressions))]


def plain(values: Sequence[Any]) -> list[Any]:
    """Values that are equal where Spark and Arrow mean the same; times in UTC."""
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        return "NaN" if value != value else value + 0
    return value.astimezone(UTC) if isinstance(value, dt.datetime) and value.tzinfo else value


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.slow
def test_every_kind_of_expression(spark: SparkSession, tmp_path: Path, session: str) -> None:
    expressions = [parse_value(text, SCHEMA) for text in VALUES]
    with set_so(spark, SESSIONS[session]):
        found = values(read(spark, DATA, SCHEMA, tmp_path), expressions, SCHEMA)
    for text, expression, ours in zip(VALUES, expressions, found, strict=True):
        assert (text, plain(ours)) == (text, plain(evaluate(expression, DATA).to_pylist()))


@pytest.mark.parametrize("session", ["New York", "no ANSI"])
def test_what_has_no_value_fails(spark: SparkSession, tmp_path: Path, session: str) -> None:
    with set_so(spark, HOSTILE[session]):
        frame = read(spark, DATA, SCHEMA, tmp_path)
        for text in FAILING:
            expression = parse_value(text, SCHEMA)
            with pytest.raises(ExpressionError):
                evaluate(expression, DATA)
            with pytest.raises(Exception, match="has no result for a row"):
                frame.where(to_column(expression, SCHEMA)).collect()


def test_random_predicates(spark: SparkSession, tmp_path: Path) -> None:
    sessions = list(HOSTILE.values())
    for number in range(rounds(usual=2, soak=400)):
        rng = random.Random(f"{SAMPLE_SEED}:{number}")
        table = random_table(rng)
        data = table.arrow_rows().drop_columns(["#file"])
        expected: list[tuple[Expression, list[Any]]] = []
        while len(expected) < PER_TABLE:
            predicate = resolve_predicate(random_predicate(rng, table), table.schema)
            try:
                expected.append((predicate, evaluate(predicate, data).to_pylist()))
            except ExpressionError:
                continue
        with set_so(spark, sessions[number % len(sessions)]):
            frame = read(spark, data, table.schema, tmp_path / str(number))
            found = values(frame, [predicate for predicate, _ in expected], table.schema)
        for (predicate, ours), theirs in zip(expected, found, strict=True):
            assert (to_spark_sql(predicate), theirs) == (to_spark_sql(predicate), ours)
