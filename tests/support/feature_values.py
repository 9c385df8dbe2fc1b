"""Random literals and predicates in Spark SQL for the columns of a schema."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as t

STRINGS = (
    "",
    " ",
    "a",
    "a/b",
    "50% off",
    "x=y",
    "ü ß ✓",
    r"it\'s",
    "B:c#d?",
    "null",
    "long " * 9,
    "\\\\n",
    "zz",
)
_DAYS = ("0001-01-01", "1582-10-15", "1969-12-31", "2013-02-28", "2024-02-29", "9999-12-31")
_TIMES = (
    "1900-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2013-06-01 12:34:56.789",
    "2024-02-29 23:59:59.123456",
    "2999-12-31 00:00:01",
)
_DOUBLES = ("'NaN'", "'Infinity'", "'-Infinity'", "-0.0", "1e308", "1.5", "-2.25", "0.1")
_FLOATS = ("'NaN'", "'-Infinity'", "-0.0", "1e30", "1.5", "0.1")
_JSON = ("1", '{"a": [1, null, "x"], "b": {}}', '"text"', "null", "[true, 1.25]", "123456789012")
_LIMITS: dict[type, int] = {t.ByteType: 2**7, t.ShortType: 2**15, t.IntegerType: 2**31, t.LongType: 2**63}
_NULL_SHARE = 0.15
_NOT_COMPARED = (t.StructType, t.ArrayType, t.MapType, t.VariantType, t.BinaryType)


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(rng: random.Random, kind: t.DataType, *, nulls: float = _NULL_SHARE) -> str:
    """A value of the type, now and then null or an odd one."""
    nested = isinstance(kind, t.StructType | t.ArrayType | t.MapType)
    if rng.random() < nulls:
        return "NULL" if nested else f"CAST(NULL AS {kind.simpleString()})"
    match kind:
        case t.StructType():
            parts = [f"'{f.name}', {literal(rng, f.dataType)}" for f in kind.fields]
            return f"named_struct({', '.join(parts)})"
        case t.ArrayType():
            return f"array({', '.join(literal(rng, kind.elementType) for _ in range(rng.randint(1, 3)))})"
        case t.MapType():
            keys = rng.sample(["k", "", "a b", "é"], rng.randint(1, 2))
            return "map(" + ", ".join(f"'{key}', {literal(rng, kind.valueType)}" for key in keys) + ")"
        case t.VariantType():
            return f"parse_json('{rng.choice(_JSON)}')"
    return f"CAST({_string(rng, kind)} AS {kind.simpleString()})"


def _string(rng: random.Random, kind: t.DataType) -> str:
    match kind:
        case t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType():
            limit = _LIMITS[type(kind)]
            return f"'{rng.choice([limit - 1, -limit]) if rng.random() < 0.1 else rng.randint(-9, 99)}'"
        case t.DecimalType():
            whole = rng.choice([0, 1, 99, 10 ** (kind.precision - kind.scale) - 1])
            return f"'{rng.choice(['', '-'])}{whole}.{rng.randint(0, 10**kind.scale - 1):0{kind.scale}d}'"
        case t.DoubleType():
            return rng.choice(_DOUBLES)
        case t.FloatType():
            return rng.choice(_FLOATS)
        case t.DateType():
            return f"'{rng.choice(_DAYS)}'"
        case t.TimestampType() | t.TimestampNTZType():
            return f"'{rng.choice(_TIMES)}'"
        case t.BooleanType():
            return rng.choice(["true", "false"])
        case t.BinaryType():
            return rng.choice(["X''", "X'00FF'", "X'616263'"])
    return f"'{rng.choice(STRINGS)}'"


def rows(rng: random.Random, fields: Sequence[t.StructField], count: int, **given: Sequence[str]) -> str:
    """A list of rows for VALUES; `given` are columns whose literals are known."""
    lines = []
    for number in range(count):
        cells = [
            given[f.name][number] if f.name in given else literal(rng, f.dataType, nulls=_nulls(f))
            for f in fields
        ]
        lines.append(f"({', '.join(cells)})")
    return ", ".join(lines)


def _nulls(field: t.StructField) -> float:
    return _NULL_SHARE if field.nullable else 0.0


def predicate(rng: random.Random, fields: Sequence[t.StructField]) -> str:
    """A condition on one or two columns that may be compared."""
    comparable = [(path, kind) for field in fields for path, kind in _leaves(field)]
    terms = [_term(rng, *rng.choice(comparable)) for _ in range(rng.choice([1, 1, 2]))]
    text = rng.choice([" AND ", " OR "]).join(terms)
    return f"NOT ({text})" if rng.random() < 0.15 else text


def _leaves(field: t.StructField, prefix: str = "") -> list[tuple[str, t.DataType]]:
    path, kind = prefix + quoted(field.name), field.dataType
    if isinstance(kind, t.StructType):
        return [leaf for inner in kind.fields for leaf in _leaves(inner, path + ".")]
    return [] if isinstance(kind, _NOT_COMPARED) else [(path, kind)]


def _term(rng: random.Random, path: str, kind: t.DataType) -> str:
    one, other = (constant(rng, kind) for _ in range(2))
    return rng.choice(
        [
            f"{path} IS NULL",
            f"{path} IS NOT NULL",
            f"{path} = {one}",
            f"{path} <> {one}",
            f"{path} < {one}",
            f"{path} >= {one}",
            f"{path} IN ({one}, {other})",
            f"{path} BETWEEN {one} AND {other}",
        ]
    )


def constant(rng: random.Random, kind: t.DataType) -> str:
    """A value as a plain literal of its type."""
    match kind:
        case t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType():
            return str(rng.randint(-9, 99))
        case t.DecimalType():
            return rng.choice(["0.00", "-1.50", "99.99"])
        case t.DoubleType() | t.FloatType():
            return rng.choice(["1.5D", "-2.25D", "0.0D", "1e30D"])
        case t.DateType():
            return f"DATE {_string(rng, kind)}"
        case t.TimestampType():
            return f"TIMESTAMP {_string(rng, kind)}"
        case t.TimestampNTZType():
            return f"TIMESTAMP_NTZ {_string(rng, kind)}"
    return _string(rng, kind)


def simple_type(field: Any) -> str:
    """The type's text in SQL."""
    return str(field.dataType.simpleString())
