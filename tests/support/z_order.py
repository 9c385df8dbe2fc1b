"""A plain model of Z-order: one Python value at a time, for tests to hold the columnar one against."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

EPOCH = dt.datetime(1970, 1, 1)


def sortable(value: Any, kind: pa.DataType) -> int | bytes:
    """A value as what it is compared by, written down without numpy."""
    if pa.types.is_string(kind):
        return bytes(value.encode()[:32])
    if pa.types.is_binary(kind):
        return bytes(value[:32])
    if pa.types.is_decimal(kind):
        unscaled = int(value.scaleb(kind.scale))
        return unscaled if kind.precision <= 18 else (unscaled + 2**127).to_bytes(16, "big")
    if pa.types.is_floating(kind):
        if math.isnan(value):
            return 0x7FF8000000000000
        bits = struct.unpack(">q", struct.pack(">d", value + 0.0))[0]
        return bits if bits >= 0 else -(2**63) - 1 - bits
    if pa.types.is_date(kind):
        return (value - EPOCH.date()).days
    if pa.types.is_timestamp(kind):
        naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return (naive - EPOCH) // dt.timedelta(microseconds=1)
    return int(value)


def range_id(value: Any, kind: pa.DataType, ranges: Mapping[str, Any]) -> int:
    """The id of the range that a value lies in, from the boundaries as they are recorded."""
    if value is None:
        return int(ranges["null_id"])
    if ranges["kind"] == "integer":
        boundaries: list[Any] = list(ranges["boundaries"])
    else:
        boundaries = [bytes.fromhex(text) for text in ranges["boundaries"]]
    return int(ranges["ids"][bisect_right(boundaries, sortable(value, kind))])


def interleave(ids: Sequence[int], bits: int) -> int:
    """The ids' bits in turn, from the highest down, the first id first."""
    text = "".join(f"{number:0{bits}b}"[place] for place in range(bits) for number in ids)
    return int(text, 2)


def z_values(table: pa.Table, curve: Mapping[str, Any]) -> list[int]:
    """The key of each row, by the recorded curve."""
    columns = []
    for ranges in curve["columns"]:
        kind = table.schema.field(ranges["path"][0]).type
        known: dict[Any, int] = {}
        ids = []
        for value in table.column(ranges["path"][0]).to_pylist():
            if value not in known:
                known[value] = range_id(value, kind, ranges)
            ids.append(known[value])
        columns.append(ids)
    return [interleave(ids, curve["bits"]) for ids in zip(*columns, strict=True)]


def _ints(low: int, high: int) -> Any:
    return lambda rng: rng.choice([low, high, 0, rng.randint(low, high), rng.randint(-9, 9) % (high + 1)])


KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "byte": (pa.int8(), _ints(-(2**7), 2**7 - 1)),
    "short": (pa.int16(), _ints(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), _ints(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), _ints(-(2**63), 2**63 - 1)),
    "float": (
        pa.float32(),
        lambda rng: rng.choice(
            [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, rng.randint(-9, 9) / 4]
        ),
    ),
    "double": (
        pa.float64(),
        lambda rng: rng.choice([float("nan"), 0.0, -0.0, rng.gauss(0, 1), rng.uniform(-1e300, 1e300)]),
    ),
    "bool": (pa.bool_(), lambda rng: rng.random() < 0.3),
    "date": (pa.date32(), lambda rng: dt.date(1, 1, 1) + dt.timedelta(rng.randint(0, 3_000_000))),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        lambda rng: dt.datetime(1900, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=rng.random() * 1e10),
    ),
    "decimal": (
        pa.decimal128(12, 2),
        lambda rng: Decimal(rng.randint(-(10**12) + 1, 10**12 - 1)).scaleb(-2),
    ),
    "wide": (
        pa.decimal128(38, 3),
        lambda rng: Decimal(rng.choice([rng.randint(-(10**15), 10**15), rng.randint(-9, 9)])).scaleb(-3),
    ),
    "string": (
        pa.string(),
        lambda rng: rng.choice(
            ["", "common-prefix-" + str(rng.randint(0, 99)), "".join(rng.choices("aäzÿ\0", k=4))]
        ),
    ),
    "long_string": (pa.string(), lambda rng: "x" * rng.choice([0, 31, 32, 40]) + rng.choice("ab€")),
    "binary": (pa.binary(), lambda rng: bytes(rng.choices(range(256), k=rng.randint(0, 40)))),
}
"""The types that can be ordered by, each with a source of values that lie at its edges now and then."""


def random_column(rng: random.Random, kind: str, rows: int, *, nulls: float) -> pa.Array:
    """Values of a kind; some columns repeat few of them."""
    data_type, draw = KINDS[kind]
    pool = [draw(rng) for _ in range(rng.choice([1, 3, 20, rows or 1]))]
    return pa.array([None if rng.random() < nulls else rng.choice(pool) for _ in range(rows)], data_type)
