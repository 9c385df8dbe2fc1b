from __future__ import annotations

import datetime as dt
import io
import json
import math
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.data.statistics_collector import (
    StatisticsAccumulator,
    statistics_from_footer,
    truncate_maximum,
    truncate_minimum,
)
from delta_core.schema.arrow import from_arrow
from delta_core.table_features.stats_leaves import parse_column_list, stats_leaves
from tests.support.statistics import collect_statistics


@dataclass
class Properties:
    data_skipping_num_indexed_cols: int = 32
    data_skipping_stats_columns: str | None = None


def collect(table, **options):
    return json.loads(collect_statistics(table, from_arrow(table.schema), **options))


def footer(table, schema=None, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    metadata = pq.read_metadata(buffer)
    return json.loads(statistics_from_footer(metadata, schema or from_arrow(table.schema)))


TABLE = pa.table(
    {
        "i": pa.array([3, None, 1], pa.int32()),
        "s": ["b", None, "a" * 40],
        "d": [dt.date(2020, 1, 2), dt.date(2019, 1, 1), None],
        "t": pa.array(
            [dt.datetime(2020, 1, 1, 0, 0, 0, 1500), dt.datetime(1960, 1, 1, 0, 0, 0, 1500), None],
            pa.timestamp("us", "UTC"),
        ),
        "n": pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 999001), None, None], pa.timestamp("us")),
        "dec": pa.array([Decimal("1.50"), Decimal("12345678901234567890.25"), None], pa.decimal128(38, 2)),
        "f": pa.array([1.5, 2.5, None]),
        "bool": [True, None, None],
        "bin": [b"x", None, b"y"],
        "l": [[1], None, []],
        "m": pa.array([[("a", 1)], None, None], pa.map_(pa.string(), pa.int32())),
        "st": [{"x": 1, "y": {"z": "q"}}, None, {"x": None, "y": None}],
        "none": pa.array([None, None, None], pa.int64()),
    }
)
EXPECTED = {
    "numRecords": 3,
    "minValues": {
        "i": 1,
        "s": "a" * 32,
        "d": "2019-01-01",
        "t": "1960-01-01T00:00:00.001Z",
        "n": "2020-01-01T00:00:00.999",
        "dec": 1.5,
        "f": 1.5,
        "st": {"x": 1, "y": {"z": "q"}},
    },
    "maxValues": {
        "i": 3,
        "s": "b",
        "d": "2020-01-02",
        "t": "2020-01-01T00:00:00.002Z",
        "n": "2020-01-01T00:00:01.000",
        "dec": 12345678901234567890.25,
        "f": 2.5,
        "st": {"x": 1, "y": {"z": "q"}},
    },
    "nullCount": {
        "i": 1,
        "s": 1,
        "d": 1,
        "t": 1,
        "n": 2,
        "dec": 1,
        "f": 1,
        "bool": 2,
        "bin": 1,
        "l": 1,
        "m": 2,
        "st": {"x": 2, "y": {"z": 2}},
        "none": 3,
    },
    "nanCount": {"f": 0},
}


def test_from_rows():
    assert collect(TABLE) == EXPECTED


def test_decimals_are_exact_numbers():
    assert '"dec":12345678901234567890.25' in collect_statistics(TABLE, from_arrow(TABLE.schema))


def test_from_footer():
    stats = footer(TABLE)
    expected = json.loads(json.dumps(EXPECTED))
    for name in ("l", "m"):
        del expected["nullCount"][name]
    # Footers of this writer do not show NaN, so the maximum says nothing.
    del expected["maxValues"]["f"]
    del expected["nanCount"]
    assert stats == expected


def test_from_footer_of_several_row_groups():
    table = pa.table({"i": [5, 1, None, None, 9, 3], "s": ["b", "a", None, None, "z", None]})
    stats = footer(table, row_group_size=2)
    assert stats["minValues"] == {"i": 1, "s": "a"}
    assert stats["maxValues"] == {"i": 9, "s": "z"}
    assert stats["nullCount"] == {"i": 2, "s": 3}


def test_from_footer_without_statistics():
    assert footer(TABLE, write_statistics=False)["minValues"] == {}
    assert footer(TABLE, write_statistics=False)["nullCount"] == {}
    assert footer(TABLE, write_statistics=["i"])["minValues"] == {"i": 1}


def test_from_footer_with_int96_and_nanoseconds():
    stats = footer(TABLE.select(["t", "i"]), use_deprecated_int96_timestamps=True)
    assert stats["minValues"] == {"i": 1}
    nanos = pa.table({"n": pa.array([1, 2], pa.timestamp("ns"))})
    assert footer(nanos, from_arrow(pa.schema([("n", pa.timestamp("us"))])))["maxValues"] == {}


def test_from_footer_of_an_older_file():
    schema = from_arrow(
        pa.schema([("i", pa.int32()), ("new", pa.string()), ("st", pa.struct([("q", pa.int8())]))])
    )
    stats = footer(pa.table({"i": pa.array([1, 2], pa.int32())}), schema)
    assert stats["nullCount"] == {"i": 0, "new": 2, "st": {"q": 2}}


def test_footer_with_ambiguous_paths():
    table = pa.table({"a.b": [100], "a": [{"b": 1}]})
    schema = from_arrow(table.schema)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    stats = json.loads(statistics_from_footer(pq.read_metadata(buffer), schema))
    assert stats["minValues"] == {}


def test_nan_leaves_bounds_out():
    stats = collect(pa.table({"x": [1.0, float("nan")], "y": [1.0, float("inf")], "z": [float("-inf"), 0.0]}))
    assert stats["minValues"] == {"y": 1.0}
    assert stats["maxValues"] == {"z": 0.0}
    assert stats["nanCount"] == {"y": 0, "z": 0}


def test_dates_beyond_python():
    far = pa.array([10**7], pa.date32())
    assert collect(pa.table({"d": far}))["minValues"] == {}


def test_parts_are_merged():
    accumulator = StatisticsAccumulator(stats_leaves(from_arrow(TABLE.schema)))
    for batch in TABLE.to_batches(max_chunksize=1):
        accumulator.update(batch)
    assert json.loads(accumulator.to_json()) == EXPECTED


def test_no_rows():
    assert collect(TABLE.slice(0, 0))["numRecords"] == 0
    assert collect(TABLE.slice(0, 0))["minValues"] == {}


def test_tight_bounds_only_on_request():
    assert "tightBounds" not in collect(TABLE)
    assert collect(TABLE, tight_bounds=True)["tightBounds"] is True


def test_indexed_columns():
    schema = from_arrow(pa.schema([pa.field(f"c{i}", pa.int64()) for i in range(40)]))
    assert len(stats_leaves(schema)) == 32
    assert len(stats_leaves(schema, Properties(data_skipping_num_indexed_cols=-1))) == 40
    assert stats_leaves(schema, Properties(data_skipping_num_indexed_cols=0)) == []
    without = stats_leaves(schema, partition_columns=["C0"])
    assert [leaf.path[0] for leaf in without] == [f"c{i}" for i in range(1, 33)]
    named = Properties(data_skipping_num_indexed_cols=1, data_skipping_stats_columns="C39, `c2`")
    assert [leaf.path for leaf in stats_leaves(schema, named)] == [("c2",), ("c39",)]


def test_nested_leaves_count_and_can_be_named():
    schema = from_arrow(TABLE.schema)
    nested = stats_leaves(schema, Properties(data_skipping_stats_columns="st.Y"))
    assert [leaf.path for leaf in nested] == [("st", "y", "z")]
    assert len(stats_leaves(schema, Properties(data_skipping_num_indexed_cols=12))) == 12


def test_column_lists():
    assert parse_column_list("a, B.c,`x.y`.`z``w` ,d") == [("a",), ("b", "c"), ("x.y", "z`w"), ("d",)]
    assert parse_column_list("") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 32 + "\x7f"),
        ("a" * 32 + "é" + "b", "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "\x7f" + "b", "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "\U0010ffff" + "b", "a" * 32 + "\U0010ffff" + "\x7f"),
        ("\U0010ffff" * 100, None),
        ("\U0010ffff" * 40, "\U0010ffff" * 40),
    ],
)
def test_truncation(text, expected):
    assert truncate_maximum(text) == expected
    assert truncate_minimum(text) == text[:32]


LONG_STRING = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from("a\x7f\x80\U0010ffff")), min_size=30, max_size=80
)


@given(LONG_STRING)
def test_truncated_bounds_enclose(text):
    encoded = text.encode()
    assert truncate_minimum(text).encode() <= encoded
    maximum = truncate_maximum(text)
    assert maximum is None or maximum.encode() >= encoded


@pytest.mark.parametrize("zeros", [[0.0], [-0.0], [0.0, -0.0]])
def test_both_zeros_lie_within_the_bounds(zeros):
    """Readers that order the two skip the file for the other one else."""
    found = collect(pa.table({"x": zeros}))
    signs = [math.copysign(1, found[name]["x"]) for name in ("minValues", "maxValues")]
    assert (found["minValues"]["x"], found["maxValues"]["x"], signs) == (0, 0, [-1, 1])
