"""Random predicates on a random table: everything that skips, at values that the table really holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from delta_core.expressions.ast import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Cast,
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
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from tests.support.reference_predicates import reference
from tests.support.skipping_tables import Table
from tests.support.skipping_values import BITS, universe

_OPERATORS = list(ComparisonOperator)
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_PATTERNS = ["yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyyMMddHH", "dd-MM"]
_PARTS = ["year", "month", "day", "quarter", "dayofyear", "weekday"]


def random_predicate(rng: random.Random, table: Table, depth: int = 3) -> Expression:
    """A condition, up to `depth` connectives deep."""
    roll = rng.random()
    if depth and roll < 0.35:
        terms = tuple(random_predicate(rng, table, depth - 1) for _ in range(rng.choice([2, 2, 3])))
        return And(terms) if rng.random() < 0.55 else Or(terms)
    if depth and roll < 0.45:
        return Not(random_predicate(rng, table, depth - 1))
    return _leaf(rng, table)


def _leaf(rng: random.Random, table: Table) -> Expression:
    path = rng.choice(list(table.values))
    if rng.random() < 0.25 and ("base",) in table.values:
        path = ("base",)
    kind, known = table.values[path]
    column = Column(path)
    roll = rng.random()
    if roll < 0.08:
        null = IsNull(column if rng.random() < 0.7 else _function(rng, column, kind)[0])
        return null if rng.random() < 0.5 else Not(null)
    if kind == BOOLEAN and roll < 0.4:
        return column
    if roll < 0.16:
        same = [other for other, (of, _) in table.values.items() if of == kind]
        return Comparison(rng.choice(_OPERATORS), column, Column(rng.choice(same)))
    if roll < 0.6 or not known:
        return _on_values(rng, column, lambda: _constant(rng, kind, known))
    if kind == STRING and roll < 0.75:
        return _on_prefix(rng, column, known)
    if kind in (FLOAT, DOUBLE) and roll < 0.65:
        return Call("isnan", (column,))
    operand, _ = _function(rng, column, kind)
    values = [_value_of(operand, path, value) for value in known]
    results = [value for value in values if value is not None]
    if not results:
        return IsNull(operand)
    return _on_values(rng, operand, lambda: Literal(rng.choice(results)))


def _on_values(rng: random.Random, operand: Expression, constant: Callable[[], Literal]) -> Expression:
    roll = rng.random()
    if roll < 0.2:
        values = [constant() for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.15:
            values.append(Literal(None))
        found = In(operand, tuple(values))
        return found if rng.random() < 0.6 else Not(found)
    if roll < 0.3:
        between = (
            Comparison(ComparisonOperator.GE, operand, constant()),
            Comparison(ComparisonOperator.LE, operand, constant()),
        )
        return And(between) if rng.random() < 0.6 else Not(And(between))
    right = Literal(None) if rng.random() < 0.03 else constant()
    sides = (operand, right) if rng.random() < 0.8 else (right, operand)
    comparison = Comparison(rng.choice(_OPERATORS), *sides)
    return comparison if rng.random() < 0.85 else Not(comparison)


def _constant(rng: random.Random, kind: DataType, known: list[Any]) -> Literal:
    value = rng.choice(known) if known and rng.random() < 0.85 else rng.choice(universe(rng, kind))
    if kind in BITS and rng.random() < 0.1 and abs(value) < 2**31:
        # A constant of another type: the column is widened.
        return Literal(rng.choice([value + 0.5, Decimal(value) + Decimal("0.5")]))
    return Literal(value)


def _on_prefix(rng: random.Random, column: Column, known: list[Any]) -> Expression:
    text = rng.choice(known)
    prefix = text[: rng.choice([0, 1, 2, 31, 32, 33, 64, 99])]
    if rng.random() < 0.25:
        condition: Expression = Call("startswith", (column, Literal(prefix)))
    else:
        escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        condition = Like(column, escaped + rng.choice(["%", "%", "%", "", "_", "%a", "_%"]))
    return condition if rng.random() < 0.6 else Not(condition)


def _function(rng: random.Random, column: Column, kind: DataType) -> tuple[Expression, DataType]:
    """A function of the column."""
    if kind in _TIMES:
        options: list[Expression] = [
            Cast(column, DATE),
            Call(rng.choice(_PARTS), (column,)),
            Call("date_trunc", (Literal(rng.choice(["YEAR", "MONTH", "week", "DAY", "HOUR"])), column)),
            Call("trunc", (column, Literal(rng.choice(["year", "QUARTER", "MM", "week"])))),
            Call("date_format", (column, Literal(rng.choice(_PATTERNS)))),
        ]
        if kind != DATE:
            options.append(Call(rng.choice(["hour", "minute", "second"]), (column,)))
            if kind == TIMESTAMP:
                options.append(Cast(column, TIMESTAMP_NTZ))
        return rng.choice(options), DATE
    if kind == STRING:
        return rng.choice(
            [
                Call("substring", (column, Literal(rng.choice([0, 1, 2])), Literal(rng.choice([1, 3, 40])))),
                Call("left", (column, Literal(rng.choice([0, 2, 32, 33])))),
                Call("concat", (column, Literal("x"))),
                Call("coalesce", (column, Literal("b"))),
            ]
        ), STRING
    if kind in BITS:
        constant = Literal(rng.choice([-3, 0, 1, 7]))
        as_long = column if kind == LONG else Cast(column, LONG)
        return rng.choice(
            [
                *(Arithmetic(o, as_long, constant) for o in list(ArithmeticOperator)[:3]),
                Arithmetic(ArithmeticOperator.SUBTRACT, constant, as_long),
                Arithmetic(ArithmeticOperator.MODULO, as_long, Literal(3)),
                Call("coalesce", (as_long, constant)),
                Cast(column, DOUBLE),
            ]
        ), LONG
    if kind in (FLOAT, DOUBLE):
        return rng.choice([Cast(column, DOUBLE), Call("coalesce", (column, Literal(1.5)))]), DOUBLE
    if isinstance(kind, DecimalType) and kind.precision <= 18:
        target = DecimalType(kind.precision + 2, kind.scale - rng.choice([0, 1]))
        return rng.choice([Cast(column, target), Cast(column, DOUBLE)]), target
    assert kind in (BINARY, BOOLEAN) or isinstance(kind, DecimalType)
    return Call("coalesce", (column, column)), kind


def _value_of(operand: Expression, path: tuple[str, ...], value: Any) -> Any:
    row: Any = value
    for name in reversed(path):
        row = {name: row}
    try:
        return reference(operand, row)
    except (ArithmeticError, ValueError):
        return None
