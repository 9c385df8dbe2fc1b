"""Files' bounds are the same, whether the encoder or we compared the values."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.data.statistics_collector import EncoderBounds, StatisticsAccumulator
from delta_core.schema.arrow import from_arrow
from delta_core.table_features.stats_leaves import stats_leaves
from tests.support.statistics import collect_statistics

SCHEMA = pa.schema(
    [
        pa.field("text", pa.string()),
        pa.field("small", pa.decimal128(9, 2)),
        pa.field("middle", pa.decimal128(18, 0)),
        pa.field("large", pa.decimal128(38, 10)),
        pa.field("inner", pa.struct([pa.field("text", pa.string()), pa.field("n", pa.int64())])),
    ]
)
STRINGS = (
    st.none() | st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(["", "\U0010ffff" * 40])
)
ROWS = st.fixed_dictionaries(
    {
        "text": STRINGS,
        "small": st.none() | st.decimals(-9999999, 9999999, places=2),
        "middle": st.none() | st.decimals(-(10**18) + 1, 10**18 - 1, places=0),
        "large": st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-10")),
        "inner": st.none() | st.fixed_dictionaries({"text": STRINGS, "n": st.none() | st.integers(-5, 5)}),
    }
)


def written(groups: Sequence[pa.Table]) -> tuple[dict[str, object], EncoderBounds]:
    """The statistics of a file of these row groups, as `file_writer` makes them."""
    schema = groups[0].schema
    leaves = stats_leaves(from_arrow(schema))
    bounds = EncoderBounds(leaves, schema)
    statistics = StatisticsAccumulator(leaves, bounds_elsewhere=bounds.paths)
    footers: list[pq.FileMetaData] = []
    with pq.ParquetWriter(
        io.BytesIO(), schema, store_decimal_as_integer=True, metadata_collector=footers
    ) as writer:
        for group in groups:
            statistics.update(group)
            bounds.add_group(group, statistics)
            writer.write_table(group, row_group_size=group.num_rows)
    bounds.add_footer(footers[0], statistics)
    return json.loads(statistics.to_json()), bounds


def compared(groups: Sequence[pa.Table]) -> dict[str, object]:
    data = pa.concat_tables(groups)
    return dict(json.loads(collect_statistics(data, from_arrow(data.schema))))


def strings(*values: str | None) -> pa.Table:
    return pa.table({"text": pa.array(values, pa.string())})


@given(st.lists(st.lists(ROWS, min_size=1, max_size=5), min_size=1, max_size=3))
def test_any_rows(parts: list[list[dict[str, object]]]) -> None:
    groups = [pa.Table.from_pylist(part, SCHEMA) for part in parts]
    stats, bounds = written(groups)
    assert {path[0] for path in bounds.paths} == set(SCHEMA.names)
    assert stats == compared(groups)


@pytest.mark.parametrize("length", [4095, 4096, 4097, 10_000])
@pytest.mark.parametrize("letter", ["a", "é", "\U0010ffff"])
@pytest.mark.parametrize("order", [1, -1])
def test_values_too_long_for_the_footer(length: int, letter: str, order: int) -> None:
    long = strings(letter * (length // len(letter.encode())) + "b" * (length % len(letter.encode())))
    groups = [strings("m", None), long, strings(None), strings("b", "zz")][::order]
    assert written(groups)[0] == compared(groups)


def test_long_values_within_a_struct() -> None:
    rows = [{"inner": {"text": "x" * 5000}}, {"inner": None}, {"inner": {"text": "b"}}]
    group = pa.Table.from_pylist(rows, pa.schema([SCHEMA.field("inner")]))
    stats, _ = written([group])
    assert stats == compared([group])
    assert stats["minValues"] == {"inner": {"text": "b"}}


def test_names_with_dots_are_not_asked_of_the_footer() -> None:
    group = pa.table({"a.b": ["p", "q"], "a": [{"b": "x"}, {"b": "y"}]})
    stats, bounds = written([group])
    assert bounds.paths == frozenset()
    assert stats == compared([group])
    assert stats["maxValues"] == {"a.b": "q", "a": {"b": "y"}}


def test_what_the_footer_lacks_has_no_bounds() -> None:
    """A later Arrow may write fewer bounds; fewer are said then, and none of the values already seen."""
    groups = [strings("c" * 5000), strings("b")]
    leaves = stats_leaves(from_arrow(groups[0].schema))
    bounds = EncoderBounds(leaves, groups[0].schema)
    statistics = StatisticsAccumulator(leaves, bounds_elsewhere=bounds.paths)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, groups[0].schema, write_statistics=False) as writer:
        for group in groups:
            statistics.update(group)
            bounds.add_group(group, statistics)
            writer.write_table(group)
    bounds.add_footer(pq.read_metadata(sink), statistics)
    stats = json.loads(statistics.to_json())
    assert (stats["minValues"], stats["maxValues"]) == ({}, {})
    assert stats["nullCount"] == {"text": 0}
