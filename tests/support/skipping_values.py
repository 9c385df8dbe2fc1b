"""Random values of every type, where mistakes of statistics show: edges, near neighbours, long strings."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from decimal import Decimal
from typing import Any

from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from tests.support.reference_predicates import sort_key

BITS = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
PRIMITIVES: tuple[DataType, ...] = (
    *BITS,
    FLOAT,
    DOUBLE,
    DecimalType(5, 2),
    DecimalType(18, 4),
    DecimalType(38, 10),
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    BOOLEAN,
)
EPOCH = dt.datetime(1970, 1, 1)
_LONG = "abcdefghijklmnopqrstuvwxyz01234"
_TAILS = ["", "5", "56", "5" * 9, "z", "\x7f", "é", "\ufffd", "\U0001f600", "\U0001f600x", "\U0010ffff"]
_STRINGS = [
    *(_LONG + tail for tail in _TAILS),
    *(_LONG + "5" + tail for tail in _TAILS),
    *(_LONG * 2 + "5" + tail for tail in _TAILS),
    *("", "a", "A", "ab", "abc", "b", "a%", "a_c", "a\\", "ü", "\n", "'", '"', "\x7f", "\U0001f600"),
    *("\U0010ffff" * 33, "\U0010ffff" * 40 + "a", "2020-01-01", "NaN", "null"),
]
_SPANS = [dt.timedelta(microseconds=1), dt.timedelta(milliseconds=1), dt.timedelta(minutes=1)]
_SPANS += [dt.timedelta(hours=1), dt.timedelta(days=1), dt.timedelta(days=31), dt.timedelta(days=366)]
_STARTS = [
    dt.datetime(1970, 1, 1),
    dt.datetime(2020, 2, 29, 23, 59, 59, 999999),
    dt.datetime(1850, 6, 1),
    dt.datetime(1971, 12, 31, 23),
    dt.datetime(2011, 12, 30),
]
_ENDS = [dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29, 23, 59, 59, 999999)]


def as_float32(value: float) -> float:
    """The nearest float of 32 bits."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def universe(rng: random.Random, kind: DataType) -> list[Any]:
    """Some values of the type in their order, many of them close together."""
    values = [_value(rng, kind) for _ in range(rng.choice([6, 16, 40]))]
    return in_order(values)


def in_order(values: list[Any]) -> list[Any]:
    """Sorted as Spark sorts, without repeats."""
    return sorted({repr(value): value for value in values}.values(), key=sort_key)


def _value(rng: random.Random, kind: DataType) -> Any:
    if kind in BITS:
        limit = 1 << (BITS[kind] - 1)
        return rng.choice([-limit, limit - 1, 0, 1, rng.randint(-9, 9), rng.randint(-limit, limit - 1)])
    if kind in (FLOAT, DOUBLE):
        special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e20, -1e-30, 0.1, 16777217.0]
        value = rng.choice(special) if rng.random() < 0.4 else rng.randint(-40, 40) / rng.choice([4, 10])
        return as_float32(value) if kind == FLOAT else value
    if isinstance(kind, DecimalType):
        limit = 10**kind.precision - 1
        near = limit // rng.choice([1, 2, 7]) - rng.randint(0, 3)
        digits = rng.choice([0, rng.randint(-500, 500), near, -near, rng.randint(-limit, limit)])
        return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -kind.scale))
    if kind == STRING:
        return rng.choice(_STRINGS)
    if kind == BINARY:
        return rng.choice([b"", b"a", b"ab", b"\xff\x00", b"z" * 40])
    if kind == BOOLEAN:
        return rng.random() < 0.5
    start = rng.choice(_STARTS) if rng.random() < 0.9 else rng.choice(_ENDS)
    moment = start + rng.randint(-2, 2) * rng.choice(_SPANS[:5] if start in _ENDS else _SPANS)
    if kind == DATE:
        return moment.date()
    return moment.replace(tzinfo=dt.UTC) if kind == TIMESTAMP else moment
