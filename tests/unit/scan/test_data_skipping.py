"""That pruning does prune, where the statistics allow it."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal

import pyarrow as pa
import pytest

from delta_core.errors import CorruptLogError
from delta_core.expressions.parse import parse_predicate
from delta_core.scan.data_skipping import files_may_match
from delta_core.schema.arrow import from_arrow
from tests.support.statistics import collect_statistics

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("c", pa.decimal128(10, 2)),
        ("st", pa.struct([("y", pa.int64())])),
        ("b", pa.bool_()),
        ("p", pa.string()),
    ]
)
DELTA = from_arrow(SCHEMA)


def one_file(low: int, high: int, part: str | None) -> tuple[dict[str, object], pa.Table]:
    values = [low, high, None]
    day = dt.date(2013, 1, 1)
    table = pa.table(
        {
            "i": values,
            "x": [None if v is None else float(v) for v in values],
            "s": [None if v is None else f"k{v:03d}" for v in values],
            "d": [None if v is None else day + dt.timedelta(days=v) for v in values],
            "t": [
                None if v is None else dt.datetime(2013, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=v)
                for v in values
            ],
            "c": [None if v is None else Decimal(v) for v in values],
            "st": [None if v is None else {"y": v} for v in values],
            "b": [True, None, None],
            "p": [part] * 3,
        },
        schema=SCHEMA,
    )
    stats = collect_statistics(table, DELTA, partition_columns=["p"])
    return {"partition_values": [("p", part)], "stats": stats}, table


FILES = [one_file(0, 9, "a"), one_file(10, 19, "b"), one_file(20, 29, None)]
NULLS = pa.table({name: pa.nulls(3, SCHEMA.field(name).type) for name in SCHEMA.names})
LISTING = pa.Table.from_pylist(
    [
        *(record for record, _ in FILES),
        {
            "partition_values": [("p", "z")],
            "stats": collect_statistics(NULLS, DELTA, partition_columns=["p"]),
        },
    ],
    schema=pa.schema([("partition_values", pa.map_(pa.string(), pa.string())), ("stats", pa.string())]),
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i = 15", [1]),
        ("15 = i", [1]),
        ("i > 19", [2]),
        ("i >= 19", [1, 2]),
        ("i < 10", [0]),
        ("i <> 5", [0, 1, 2]),
        ("not (i < 20)", [2]),
        ("i in (1, 25)", [0, 2]),
        ("i between 12 and 13", [1]),
        ("i not between 0 and 19", [2]),
        ("i is null", [0, 1, 2, 3]),
        ("i is not null", [0, 1, 2]),
        ("i <=> 5", [0]),
        ("i <=> null", [0, 1, 2, 3]),
        ("i = 5.5", [0]),
        ("i + 1 = 5", [0]),
        ("i - 10 >= 12", [2]),
        ("-i < -19", [2]),
        ("i * -2 > -4", [0]),
        ("i * i > 1000", [0, 1, 2]),
        ("i % 7 = 1", [0, 1, 2]),
        ("i + c > 40", [2]),
        ("coalesce(i, 0) > 19", [2]),
        ("coalesce(i, 30) > 19", [0, 1, 2, 3]),
        ("coalesce(i, i) > 19", [2]),
        ("i is distinct from 5", [0, 1, 2, 3]),
        ("i is not distinct from 15", [1]),
        ("i + 1 is null", [0, 1, 2, 3]),
        ("i + 1 is not null", [0, 1, 2]),
        ("not isnan(x)", [0, 1, 2, 3]),
        ("isnan(x)", []),
        ("x + 1 > 25", [0, 1, 2]),
        ("startswith(s, 'k01')", [1]),
        ("not startswith(s, 'k0')", []),
        ("not startswith(s, 'k01')", [0, 2]),
        ("startswith(s, null)", []),
        ("contains(s, 'k')", [0, 1, 2]),
        ("s like 'k015'", [1]),
        ("left(s, 3) = 'k02'", [2]),
        ("substring(s, 1, 3) in ('k00', 'k02')", [0, 2]),
        ("substring(s, 2, 3) = '005'", [0, 1, 2]),
        ("upper(s) = 'K005'", [0, 1, 2]),
        ("month(d) = 1", [0, 1, 2]),
        ("month(d) = 2", []),
        ("day(d) between 12 and 13", [1]),
        ("dayofyear(d) > 20", [2]),
        ("quarter(d) = 2", []),
        ("weekday(d) = 1", [0, 1, 2]),
        ("trunc(d, 'MM') = '2013-02-01'", []),
        ("date_trunc('DAY', t) = '2013-01-02'", [2]),
        ("date_format(d, 'yyyy-MM-dd') > '2013-01-20'", [2]),
        ("date_format(d, 'dd-MM') = '12-01'", [0, 1, 2]),
        ("d + 1 = '2013-01-13'", [1]),
        ("date_sub(d, 1) = '2013-01-13'", [1]),
        ("d > date_add(DATE '2013-01-01', 19)", [2]),
        ("d > DATE '2013-01-31' - INTERVAL 11 DAYS", [2]),
        ("last_day(d) = '2013-01-31'", [0, 1, 2]),
        ("hour(t) >= 20", [2]),
        ("x > 19", [2]),
        ("x = 'NaN'", []),
        ("s = 'k005'", [0]),
        ("s like 'k01%'", [1]),
        ("s like 'k0__'", [0, 1, 2]),
        ("s not like 'k0%'", []),
        ("s like '%5'", [0, 1, 2]),
        ("d = '2013-01-12'", [1]),
        ("d >= '2013-01-21' or p = 'a'", [0, 2]),
        ("year(d) = 2014", []),
        ("t >= '2013-01-01 20:00:00'", [2]),
        ("cast(t as date) = '2013-01-02'", [2]),
        ("cast(i as bigint) = 5", [0]),
        ("c > 19.5", [2]),
        ("st.y = 11", [1]),
        ("st is null", [0, 1, 2, 3]),
        ("b", [0, 1, 2]),
        ("p = 'b'", [1]),
        ("p <> 'b'", [0, 3]),
        ("p is null", [2]),
        ("p in ('a', 'b') and i > 12", [1]),
        ("(p = 'a' and i > 12) or (p = 'b' and i < 12)", [1]),
        ("upper(p) = 'A'", [0]),
        ("i > 3 and null", []),
        ("true", [0, 1, 2, 3]),
        ("false", []),
        ("i not in (1, null)", []),
    ],
)
def test_kept_files(text, kept):
    predicate = parse_predicate(text, DELTA)
    mask = files_may_match(LISTING, predicate, DELTA, ["p"])
    assert [index for index, keep in enumerate(mask) if keep] == kept


def test_constant_files():
    record, _ = one_file(5, 5, "a")
    listing = pa.Table.from_pylist([record], schema=LISTING.schema)
    for text in ("i <> 5", "x <> 5", "c not in (5)", "s <> 'k005'", "d <> '2013-01-06'"):
        assert files_may_match(listing, parse_predicate(text, DELTA), DELTA, ["p"]).tolist() == [False]


def test_long_in_lists():
    values = ", ".join(str(v) for v in range(12, 1000))
    mask = files_may_match(LISTING, parse_predicate(f"i in ({values})", DELTA), DELTA, ["p"])
    assert mask.tolist() == [False, True, True, False]


def test_timestamps_between_milliseconds():
    stats = {
        "numRecords": 1,
        "minValues": {"t": "2013-01-01T00:00:00.001Z"},
        "maxValues": {"t": "2013-01-01T00:00:00.001Z"},
        "nullCount": {"t": 0},
    }
    listing = pa.Table.from_pylist(
        [{"partition_values": [], "stats": json.dumps(stats)}], schema=LISTING.schema
    )

    def kept(text):
        return bool(files_may_match(listing, parse_predicate(text, DELTA), DELTA, [])[0])

    assert kept("t = '2013-01-01 00:00:00.001999'")
    assert kept("t > '2013-01-01 00:00:00.001'")
    assert not kept("t > '2013-01-01 00:00:00.002'")
    assert not kept("t < '2013-01-01 00:00:00.001'")


@pytest.mark.parametrize(
    "stats",
    [
        {"numRecords": 1, "minValues": {"x": 1.0}, "maxValues": {"x": 2.0}, "nullCount": {"x": 0}},
        {"numRecords": 1, "minValues": {"x": "NaN"}, "maxValues": {"x": "NaN"}, "nullCount": {"x": 0}},
    ],
)
def test_floating_maximum_without_word_on_nan_is_not_trusted(stats):
    listing = pa.Table.from_pylist(
        [{"partition_values": [], "stats": json.dumps(stats)}], schema=LISTING.schema
    )
    assert files_may_match(listing, parse_predicate("x > 100", DELTA), DELTA, [])[0]
    below = files_may_match(listing, parse_predicate("x < 0", DELTA), DELTA, [])[0]
    assert below == (stats["minValues"]["x"] == "NaN")


def test_a_wrong_partition_value_is_refused_with_what_is_known_of_the_file():
    listing = pa.table(
        {
            "partition_values": pa.array([[("i", "1")], [("i", "x")]], pa.map_(pa.string(), pa.string())),
            "stats": pa.nulls(2, pa.string()),
        }
    )
    for files, where in (
        (listing, "The partition value 'x' is not of type integer\\.$"),
        (
            listing.append_column("path", pa.array(["a", "b"])),
            "'x' is not of type integer, for the column i of the data file b",
        ),
    ):
        with pytest.raises(CorruptLogError) as caught:
            files_may_match(files, parse_predicate("i > 0", DELTA), DELTA, ["i"])
        assert re.search(where, caught.value.problem)
        assert caught.value.fix.startswith("Repair the add action")


def test_no_files():
    assert files_may_match(LISTING.slice(0, 0), parse_predicate("i = 1", DELTA), DELTA, ["p"]).tolist() == []
