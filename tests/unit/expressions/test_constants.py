"""Constants: what they become next to a column, what they are by themselves, how they are written down."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Call, Cast, Column, Comparison, ComparisonOperator, In, Literal
from delta_core.expressions.columns import conjunction, disjunction
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse, parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve, resolve_predicate
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import BINARY, BOOLEAN, DATE, DOUBLE, DecimalType

DATA = pa.table(
    {
        "a": pa.array([0, 2, None], pa.int32()),
        "b": pa.array([2**62, -(2**63), None], pa.int64()),
        "x": [math.inf, -1.5, None],
        "c": pa.array([Decimal("1.20"), Decimal("99999999.99"), None], pa.decimal128(10, 2)),
        "f": [True, False, None],
        "by": [b"a", b"\xc3\xbc", None],
        "d": [dt.date(2024, 2, 29), dt.date(1970, 1, 1), None],
        "l": [[1], [], None],
    }
)
SCHEMA = from_arrow(DATA.schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((f"f = '{word}'", [True, False, None]) for word in ("true", "T", "yes", " y ", "1")),
        *((f"f = '{word}'", [False, True, None]) for word in ("FALSE", "f", "no", "n", "0")),
        ("by = 'a'", [True, False, None]),
        ("by in ('ü', 'b')", [False, True, None]),
        ("x = 'Infinity'", [True, False, None]),
        ("x = '-1.5'", [False, True, None]),
        ("c = '1.2'", [True, False, None]),
        ("c > '99999999'", [False, True, None]),
        ("c = 1.2", [True, False, None]),
        ("c < 1e300", [True, True, None]),
        ("a < 9223372036854775808", [True, True, None]),
        ("b = -9223372036854775808", [False, True, None]),
        ("'2024-02-29' = d", [True, False, None]),
        ("a > -128Y", [True, True, None]),
        ("a = CAST(FALSE AS INT)", [True, False, None]),
        ("a < CAST(TRUE AS DECIMAL(3,1))", [True, False, None]),
        ("x > CAST(TRUE AS DOUBLE)", [True, False, None]),
    ],
)
def test_text_and_numbers_take_the_columns_type(text, expected):
    predicate = parse_predicate(text, SCHEMA)
    assert evaluate(predicate, DATA).to_pylist() == expected
    assert evaluate(parse_predicate(to_spark_sql(predicate), SCHEMA), DATA).to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("f = 'maybe'", "boolean: true or false"),
        ("a = '2147483648'", "integer"),
        ("b = '9223372036854775808'", "long"),
        ("x = '1e999'", "double"),
        ("c = '1.234'", "decimal(10,2)"),
        ("l = 'x'", "array<long>"),
        ("CAST('x' AS INT) = a", "integer"),
    ],
)
def test_text_that_spells_no_value_of_the_type_is_refused(text, kind):
    with pytest.raises(ExpressionError, match="is not of type") as caught:
        parse_predicate(text, SCHEMA)
    assert caught.value.cause.endswith(f"has type {kind.split(':')[0]}.")
    assert caught.value.fix == f"Write a constant of type {kind}."


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("c = '99999999999.00'", "is not a value of type decimal(10,2)"),
        ("c = CAST(123456 AS DECIMAL(5,2))", "is not a value of type decimal(5,2)"),
    ],
)
def test_a_constant_with_too_many_digits_for_its_type_is_refused(text, part):
    with pytest.raises(ExpressionError) as caught:
        evaluate(parse_predicate(text, SCHEMA), DATA)
    assert part in caught.value.problem


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"a > {'9' * 39}", "more than 38 digits"),
        ("a = CAST(300 AS TINYINT)", "300 is not a value of type byte"),
        ("a = 128Y", "128 is not a value of type byte"),
        ("a = -TRUE", "not numeric"),
        ("c = 'NaN'", "Decimals are finite"),
        ("a in (DATE '2024-02-29')", "does not have the column's type"),
        ("length(by, by) = 1", "arguments of length cannot be 2"),
        ("lower() = 'nothing'", "arguments of lower cannot be 0"),
        ("concat() = 'nothing'", "the maximum is not set"),
        ("CAST(a AS INTERVAL DAY) = 1", "is not supported"),
        ("d > DATE '2024-01-01' + INTERVAL 1 FORTNIGHT", "is not supported"),
    ],
)
def test_refused(text, part):
    with pytest.raises(ExpressionError) as caught:
        parse_predicate(text, SCHEMA)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (object(), "object has no SQL type"),
        ([1], "list has no SQL type"),
        (Decimal("Infinity"), "Decimals are finite"),
        (Decimal("1E+38"), "more than 38 digits"),
        (10**38, "more than 38 digits"),
    ],
)
def test_a_python_value_that_is_no_constant_is_refused(value, part):
    with pytest.raises(ExpressionError) as caught:
        resolve_predicate(Comparison(ComparisonOperator.EQ, Column(("a",)), Literal(value)), SCHEMA)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "part"),
    [(Call("coalesce", ()), "coalesce needs an argument"), (In(Column(("a",)), ()), "at least one value")],
)
def test_a_tree_without_operands_is_refused(expression, part):
    with pytest.raises(ExpressionError, match=part):
        resolve(expression, SCHEMA)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (2**70, DecimalType(22, 0), "CAST('1180591620717411303424' AS DECIMAL(22,0))"),
        (-(2**70), DecimalType(22, 0), "CAST('-1180591620717411303424' AS DECIMAL(22,0))"),
        (Decimal("1E+5"), DecimalType(6, 0), "CAST('100000' AS DECIMAL(6,0))"),
        (Decimal("-7"), DecimalType(1, 0), "CAST('-7' AS DECIMAL(1,0))"),
        (Decimal("0.050"), DecimalType(3, 3), "CAST('0.050' AS DECIMAL(3,3))"),
        (b"a", BINARY, "X'61'"),
        (True, BOOLEAN, "TRUE"),
    ],
)
def test_a_constants_own_type_and_text(value, kind, text):
    resolved = resolve(Literal(value), SCHEMA)
    assert resolved == Literal(value, kind)
    assert to_spark_sql(resolved) == text
    assert parse(text) in (Literal(value, kind), Literal(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1E+5"), "CAST('100000' AS DECIMAL(6,0))"),
        (Decimal("-12"), "CAST('-12' AS DECIMAL(2,0))"),
        (Decimal("9" * 38), f"CAST('{'9' * 38}' AS DECIMAL(38,0))"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_a_decimal_without_a_type_is_written_with_one_that_holds_it(value, text):
    assert to_spark_sql(Literal(value)) == text
    again = parse(text)
    assert isinstance(again, Literal)
    assert again.value == value


def test_a_number_beyond_64_bits_is_compared_as_it_is():
    predicate = resolve_predicate(
        Comparison(ComparisonOperator.LT, Column(("b",)), Literal(-(2**63) - 1)), SCHEMA
    )
    assert evaluate(predicate, DATA).to_pylist() == [False, False, None]


def test_a_cast_constant_of_a_tree_is_converted_once():
    text = Comparison(ComparisonOperator.EQ, Column(("d",)), Cast(Literal("2024-02-29"), DATE))
    assert resolve_predicate(text, SCHEMA) == Comparison(
        ComparisonOperator.EQ, Column(("d",)), Literal(dt.date(2024, 2, 29), DATE)
    )
    null = Comparison(ComparisonOperator.EQ_NULL_SAFE, Column(("x",)), Cast(Literal(None), DOUBLE))
    assert evaluate(resolve_predicate(null, SCHEMA), DATA).to_pylist() == [False, False, True]


def test_connectives_of_constants():
    term = Column(("f",))
    assert conjunction([]) == Literal(True)
    assert disjunction([]) == Literal(False)
    assert conjunction([term, Literal(False)]) == Literal(False)
    assert disjunction([term, Literal(True)]) == Literal(True)
    assert conjunction([Literal(True), term]) == disjunction([term, Literal(False)]) == term
    # Null is neither: `f AND NULL` is false where f is.
    assert evaluate(conjunction([term, Literal(None)]), DATA).to_pylist() == [None, False, None]
