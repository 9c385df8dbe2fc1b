"""Random predicates over one fixed schema, and their text in DuckDB's SQL."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from delta_core.expressions.ast import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int32()),
        ("x", pa.float64()),
        ("y", pa.float32()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("c", pa.decimal128(10, 2)),
        ("f", pa.bool_()),
    ]
)

EPOCH = dt.datetime(1970, 1, 1)
_LONG = "abcdefghijklmnopqrstuvwxyz012345"
_STRINGS = [
    "",
    "a",
    "ab",
    "b",
    "abc",
    "a%",
    "a_c",
    "ü",
    "\U0010ffff",
    _LONG,
    _LONG + "a",
    _LONG + "b" * 9,
    _LONG + "é",
]
_MICROS = st.one_of(
    st.integers(-3000, 3000), st.sampled_from([0, 999, 1000, 1001, 1_500_000_000_000_001, -1, -999, -1000])
)

VALUES = {
    "i": st.integers(-5, 5),
    "j": st.integers(-5, 5),
    "x": st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.0, 2.5, math.inf, math.nan]),
    "y": st.sampled_from([-1.5, 0.0, 1.0, 2.5, math.nan]),
    "s": st.sampled_from(_STRINGS),
    "d": st.integers(-3, 3).map(lambda n: dt.date(2000, 1, 1) + dt.timedelta(days=n)),
    "t": _MICROS.map(lambda n: (EPOCH + dt.timedelta(microseconds=n)).replace(tzinfo=dt.UTC)),
    "n": _MICROS.map(lambda n: EPOCH + dt.timedelta(microseconds=n)),
    "c": st.integers(-300, 300).map(lambda n: Decimal(n) / 100),
    "f": st.booleans(),
}


def rows(*, min_size: int = 0, max_size: int = 12) -> st.SearchStrategy[list[dict[str, object]]]:
    row = st.fixed_dictionaries({name: st.one_of(st.none(), values) for name, values in VALUES.items()})
    return st.lists(row, min_size=min_size, max_size=max_size)


def table_of(data: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(data, schema=SCHEMA)


_GROUPS = [("i", "j"), ("x", "y"), ("s",), ("d",), ("t",), ("n",), ("c",)]
_OPERATORS = st.sampled_from(list(ComparisonOperator))


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    group = draw(st.sampled_from(_GROUPS))
    name = draw(st.sampled_from(group))
    left: Expression = Column((name,))
    if group == ("i", "j") and draw(st.booleans()):
        operator = draw(st.sampled_from([o for o in ArithmeticOperator if o != ArithmeticOperator.DIVIDE]))
        left = Arithmetic(operator, left, Literal(draw(st.sampled_from([-3, -1, 2, 3]))))
    right: Expression
    if draw(st.integers(0, 3)) == 0:
        right = Column((draw(st.sampled_from(group)),))
    else:
        right = Literal(
            draw(st.one_of(VALUES[name], st.none()) if draw(st.integers(0, 9)) == 0 else VALUES[name])
        )
    sides = (left, right) if draw(st.booleans()) else (right, left)
    return Comparison(draw(_OPERATORS), *sides)


@st.composite
def memberships(draw: st.DrawFn) -> Expression:
    name = draw(st.sampled_from(["i", "x", "s", "d", "t", "n", "c"]))
    values = draw(st.lists(VALUES[name], min_size=1, max_size=4))
    if draw(st.integers(0, 4)) == 0:
        values.append(None)
    return In(Column((name,)), tuple(Literal(value) for value in values))


LEAVES = st.one_of(
    comparisons(),
    memberships(),
    st.sampled_from(sorted(VALUES)).map(lambda name: IsNull(Column((name,)))),
    st.sampled_from(["%", "a%", "a_%", "", "_", "%c", _LONG + "%", _LONG + "b%", "ü%", r"a\%", r"a\_%"]).map(
        lambda pattern: Like(Column(("s",)), pattern)
    ),
    st.just(Column(("f",))),
    st.sampled_from([Literal(True), Literal(False), Literal(None)]),
)

PREDICATES: st.SearchStrategy[Expression] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda terms: And(tuple(terms))),
        st.lists(inner, min_size=2, max_size=3).map(lambda terms: Or(tuple(terms))),
    ),
    max_leaves=6,
)


def duckdb_sql(expression: Expression) -> str:
    match expression:
        case Column((name,)):
            return f'"{name}"'
        case Literal(value):
            return _duckdb_literal(value)
        case Comparison(operator, left, right):
            sign = "IS NOT DISTINCT FROM" if operator == ComparisonOperator.EQ_NULL_SAFE else str(operator)
            return f"({duckdb_sql(left)} {sign} {duckdb_sql(right)})"
        case Arithmetic(operator, left, right):
            return f"({duckdb_sql(left)} {operator} {duckdb_sql(right)})"
        case And(terms):
            return "(" + " AND ".join(duckdb_sql(term) for term in terms) + ")"
        case Or(terms):
            return "(" + " OR ".join(duckdb_sql(term) for term in terms) + ")"
        case Not(operand):
            return f"(NOT {duckdb_sql(operand)})"
        case IsNull(operand):
            return f"({duckdb_sql(operand)} IS NULL)"
        case In(operand, values):
            return f"({duckdb_sql(operand)} IN ({', '.join(duckdb_sql(v) for v in values)}))"
        case Like(operand, pattern):
            return f"({duckdb_sql(operand)} LIKE '{pattern}' ESCAPE '\\')"
    raise AssertionError(expression)


def _duckdb_literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return f"'{value}'::DOUBLE"
        case Decimal():
            return f"{value:f}::DECIMAL(10,2)"
        case dt.datetime():
            return f"'{value.isoformat(sep=' ')}'::{'TIMESTAMPTZ' if value.tzinfo else 'TIMESTAMP'}"
        case dt.date():
            return f"DATE '{value}'"
        case str():
            return f"'{value}'"
    return str(value)
