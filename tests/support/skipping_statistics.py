"""Statistics of one file as the engines of the field spell them, right and as they really come out."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from delta_core.data.statistics_collector import bound_to_json
from delta_core.replay.parsed_statistics import statistics_to_json
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from tests.support.skipping_values import in_order

Path = tuple[str, ...]
Bound = Any
"""What stands in the JSON; None is left out."""

ZONES = ["UTC", "Europe/Amsterdam", "America/Juneau", "Europe/Dublin", "Asia/Kolkata", "Asia/Manila"]


class Raw(str):
    """Digits that go into the JSON as they are."""


def render(node: Any, *, ascii_only: bool) -> str:
    """JSON text; numbers in `Raw` keep their digits."""
    if isinstance(node, dict):
        items = (f"{json.dumps(k)}:{render(v, ascii_only=ascii_only)}" for k, v in node.items())
        return "{" + ",".join(items) + "}"
    if isinstance(node, Raw):
        return str(node)
    return json.dumps(node, ensure_ascii=ascii_only)


def spark_bounds(rng: random.Random, values: list[Any], kind: DataType) -> tuple[Bound, Bound]:
    """As delta-spark writes them, of some version, in some session's time zone."""
    low, high = values[0], values[-1]
    if kind in (FLOAT, DOUBLE):
        return _java_float(low, kind), _java_float(high, kind)
    if isinstance(kind, DecimalType):
        return Raw(format(low, "f")), Raw(format(high, "f"))
    if kind == STRING:
        cut = rng.choice([_cut_today, _cut_once])
        return low[:32], cut(high)
    if kind == TIMESTAMP:
        zone = ZoneInfo(rng.choice(ZONES))
        return _zoned(low, zone), _zoned(high, zone)
    if kind == TIMESTAMP_NTZ:
        return tuple(v.isoformat(timespec="milliseconds") for v in (low, high))  # type: ignore[return-value]
    if kind == DATE:
        return low.isoformat(), high.isoformat()
    return (None, None) if kind in (BOOLEAN, BINARY) else (low, high)


def deltalake_bounds(rng: random.Random, values: list[Any], kind: DataType) -> tuple[Bound, Bound]:
    """As deltalake writes them: from Parquet's footers, NaN left out, decimals as doubles."""
    if kind in (FLOAT, DOUBLE):
        known = [value for value in values if not math.isnan(value)]
        if not known:
            return None, None
        return tuple(  # type: ignore[return-value]
            None if math.isinf(value) else Raw(repr(value)) for value in (known[0], known[-1])
        )
    low, high = values[0], values[-1]
    if isinstance(kind, DecimalType):
        return Raw(repr(float(low))), Raw(repr(float(high)))
    if kind == STRING:
        return _cut_bytes(low, up=False), _cut_bytes(high, up=True)
    if kind == TIMESTAMP_NTZ:
        return tuple(v.isoformat(sep=" ", timespec="milliseconds") for v in (low, high))  # type: ignore[return-value]
    if kind == TIMESTAMP:
        return _zoned(low, ZoneInfo("UTC")), _zoned(high, ZoneInfo("UTC"))
    if kind == BINARY:
        return repr(low), repr(high)
    return spark_bounds(rng, values, kind) if kind != BOOLEAN else (low, high)


def our_bounds(rng: random.Random, values: list[Any], kind: DataType) -> tuple[Bound, Bound]:
    """As this library's writer writes them."""
    if kind in (BOOLEAN, BINARY) or any(isinstance(v, float) and math.isnan(v) for v in values):
        return None, None
    found = [bound_to_json(v, kind, maximum=v is values[-1]) for v in (values[0], values[-1])]
    if isinstance(kind, DecimalType):
        return Raw(format(values[0], "f")), Raw(format(values[-1], "f"))
    if kind == STRING:
        found = [bound_to_json(values[0], kind, maximum=False), bound_to_json(values[-1], kind, maximum=True)]
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        found = [bound_to_json(values[0], kind, maximum=False), bound_to_json(values[-1], kind, maximum=True)]
    return found[0], found[1]


WRITERS: Sequence[Callable[[random.Random, list[Any], DataType], tuple[Bound, Bound]]] = (
    our_bounds,
    spark_bounds,
    deltalake_bounds,
)


def statistics(
    rng: random.Random, leaves: dict[Path, tuple[DataType, list[Any]]], num_records: int, *, tight: bool
) -> str | None:
    """The statistics of a file.

    Args:
        rng: picks the writer and what it leaves out.
        leaves: for each column its type when the file was written, and its value in every row.
        num_records: rows, deleted ones included.
        tight: whether no row has been deleted.
    """
    style = rng.random()
    if style < 0.06:
        return rng.choice([None, "", "{}", "{broken", f'{{"numRecords":{num_records}}}'])
    if style < 0.16:
        return _parsed(rng, leaves, num_records)
    writer = rng.choice(WRITERS)
    document: dict[str, Any] = {"numRecords": num_records, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for path, (kind, values) in leaves.items():
        known = in_order([value for value in values if value is not None])
        low, high = writer(rng, known, kind) if known else (None, None)
        _put(document, "minValues", path, low)
        _put(document, "maxValues", path, high)
        nulls = values.count(None)
        if not tight and 0 < nulls < num_records:
            # Then only that some are null and some are not.
            nulls = rng.randint(1, num_records - 1)
        _put(document, "nullCount", path, nulls)
        clean = kind in (FLOAT, DOUBLE) and not any(math.isnan(v) for v in known)
        if writer is our_bounds and clean:
            _put(document, "nanCount", path, 0)
    if not tight or rng.random() < 0.1:
        document["tightBounds"] = tight
    if rng.random() < 0.15:
        _forget(rng, document)
    if rng.random() < 0.1:
        document["minValues"].update({f"wide{n}": n for n in range(40)})
        document["more"] = {"nested": [1, {"a": "}{"}]}
    return render(document, ascii_only=rng.random() < 0.5)


def _forget(rng: random.Random, document: dict[str, Any]) -> None:
    """As a writer does that indexes few columns."""
    for name in list(document):
        node = document[name]
        if isinstance(node, dict):
            for key in list(node):
                if rng.random() < 0.4:
                    del node[key]
        elif rng.random() < 0.2:
            del document[name]


def _parsed(
    rng: random.Random, leaves: dict[Path, tuple[DataType, list[Any]]], num_records: int
) -> str | None:
    """From a checkpoint's `stats_parsed`: columns of the bounds' own types."""
    trees: dict[str, Any] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for path, (kind, values) in leaves.items():
        known = in_order([value for value in values if value is not None])
        bounds: tuple[Any, Any] = (known[0], known[-1]) if known else (None, None)
        if kind in (TIMESTAMP, TIMESTAMP_NTZ) and known:
            bounds = tuple(v.replace(microsecond=v.microsecond // 1000 * 1000) for v in bounds)  # type: ignore[assignment]
        if kind == STRING and known:
            bounds = bounds[0][:32], _cut_today(bounds[1])
        if kind not in (BOOLEAN, BINARY):
            _put(trees, "minValues", path, pa.scalar(bounds[0], type_to_arrow(kind)))
            _put(trees, "maxValues", path, pa.scalar(bounds[1], type_to_arrow(kind)))
        _put(trees, "nullCount", path, pa.scalar(values.count(None), pa.int64()))
    arrays = [pa.array([num_records], pa.int64()), *(_struct(trees[name]) for name in trees)]
    found = statistics_to_json(pa.StructArray.from_arrays(arrays, names=["numRecords", *trees]))
    return found[0].as_py()  # type: ignore[no-any-return]


def _struct(node: Any) -> pa.Array:
    if not isinstance(node, dict):
        return pa.array([node.as_py()], node.type)
    if not node:
        return pa.array([{"": None}], pa.struct([("", pa.int64())]))
    return pa.StructArray.from_arrays([_struct(child) for child in node.values()], names=list(node))


def _put(document: dict[str, Any], name: str, path: Path, value: Any) -> None:
    if value is None:
        return
    node = document.setdefault(name, {})
    for part in path[:-1]:
        node = node.setdefault(part, {})
    node[path[-1]] = value


def _java_float(value: float, kind: DataType) -> Bound:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return Raw(str(np.float32(value)) if kind == FLOAT else repr(value))


def _zoned(value: dt.datetime, zone: ZoneInfo) -> str:
    try:
        local = value.astimezone(zone)
    except OverflowError:
        local = value
    seconds = int((local.utcoffset() or dt.timedelta()).total_seconds())
    hours, minutes = divmod(abs(seconds) // 60, 60)
    # The offset's seconds have no place in the text.
    offset = f"{'-' if seconds < 0 else '+'}{hours:02d}:{minutes:02d}" if hours or minutes else "Z"
    return local.replace(tzinfo=None).isoformat(timespec="milliseconds") + offset


def _cut_today(value: str) -> str:
    if len(value) <= 32:
        return value
    for length in range(32, len(value)):
        if value[length] < "\x7f":
            return value[:length] + "\x7f"
        if value[length] != "\U0010ffff":
            return value[:length] + "\U0010ffff"
    return value


def _cut_once(value: str) -> str:
    """As delta-spark did before it compared by UTF-8: by units of 16 bits."""
    units = value.encode("utf-16-be")
    if len(value) <= 32:
        return value
    at = len(value[:32].encode("utf-16-be")) // 2
    while at * 2 < len(units) and int.from_bytes(units[at * 2 : at * 2 + 2], "big") >= 0xFFFD:
        at += 1
    return units[: at * 2].decode("utf-16-be") + "\ufffd" if at * 2 < len(units) else value


def _cut_bytes(value: str, *, up: bool) -> Bound:
    """At most 64 bytes; a maximum is raised to the next text of that length."""
    encoded = value.encode()
    if len(encoded) <= 64:
        return value
    kept = encoded[:64].decode(errors="ignore")
    if not up:
        return kept
    for at in reversed(range(len(kept))):
        if ord(kept[at]) < 0x10FFFF and ord(kept[at]) + 1 != 0xD800:
            return kept[:at] + chr(ord(kept[at]) + 1)
    return None
