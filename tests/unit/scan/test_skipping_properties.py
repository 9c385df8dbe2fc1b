"""No file that pruning gives up may hold a matching row, whatever wrote its statistics."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core.data.statistics_collector import statistics_from_footer
from delta_core.expressions.ast import (
    Column,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
)
from delta_core.expressions.evaluate import matches
from delta_core.expressions.render import to_spark_sql
from delta_core.expressions.typing import resolve_predicate
from delta_core.scan.data_skipping import files_may_match
from delta_core.schema.arrow import from_arrow, type_from_arrow
from delta_core.schema.partition_values import serialize
from tests.support.statistics import collect_statistics
from tests.unit.expressions.predicates import PREDICATES, SCHEMA, VALUES, rows, table_of

DELTA_SCHEMA = from_arrow(SCHEMA)
PARTITIONABLE = ["i", "s", "d", "t", "c", "f"]


def from_rows(table: pa.Table, partition_columns: list[str]) -> str:
    return collect_statistics(table, DELTA_SCHEMA, partition_columns=partition_columns)


def from_footer(table: pa.Table, partition_columns: list[str]) -> str:
    buffer = io.BytesIO()
    pq.write_table(table.drop_columns(partition_columns), buffer, row_group_size=3)
    return statistics_from_footer(pq.read_metadata(buffer), DELTA_SCHEMA, partition_columns=partition_columns)


def truncated_like_spark(table: pa.Table, partition_columns: list[str]) -> str:
    """As older writers leave them: both timestamp bounds cut down to milliseconds."""
    stats = json.loads(from_rows(table, partition_columns))
    for name in ("t", "n"):
        if name in stats["maxValues"]:
            top = pc.floor_temporal(pc.max(table.column(name)), unit="millisecond").as_py()
            text = top.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            stats["maxValues"][name] = text
    stats.pop("nanCount", None)
    return json.dumps(stats)


def nan_left_out(table: pa.Table, partition_columns: list[str]) -> str:
    """As writers do that leave NaN out of the bounds and say nothing of it."""
    stats = json.loads(from_rows(table, partition_columns))
    stats.pop("nanCount", None)
    for name in ("x", "y"):
        column = table.column(name)
        plain = column.filter(pc.is_finite(column))
        if len(plain):
            stats["minValues"].setdefault(name, pc.min(plain).as_py())
            stats["maxValues"].setdefault(name, pc.max(plain).as_py())
        if not pc.all(pc.is_finite(column.drop_null())).as_py():
            infinities = [v for v in column.to_pylist() if v in (float("inf"), float("-inf"))]
            if infinities:
                stats["minValues"].pop(name, None)
                stats["maxValues"].pop(name, None)
    return json.dumps(stats)


def odd(table: pa.Table, partition_columns: list[str]) -> str:
    """Valid, in forms that other writers use: spaces, numbers as strings, floats for integers."""
    stats = json.loads(from_rows(table, partition_columns))
    for side in ("minValues", "maxValues"):
        if "i" in stats[side]:
            stats[side]["i"] = float(stats[side]["i"])
        if "c" in stats[side]:
            stats[side]["c"] = str(stats[side]["c"])
    stats["extra"] = {"nested": [1, {"a": "}{"}]}
    return json.dumps(stats, indent=None if table.num_rows % 2 else 1)


SOURCES = [
    from_rows,
    from_footer,
    truncated_like_spark,
    nan_left_out,
    odd,
    lambda table, columns: None,
    lambda table, columns: "",
    lambda table, columns: "{}",
    lambda table, columns: "{broken",
    lambda table, columns: json.dumps({"numRecords": table.num_rows}),
]


@st.composite
def files(draw):
    partition_columns = draw(st.lists(st.sampled_from(PARTITIONABLE), max_size=2, unique=True))
    tables, records = [], []
    for data in draw(st.lists(rows(min_size=1, max_size=4), min_size=1, max_size=3)):
        table = table_of(data)
        values = {}
        for name in partition_columns:
            first = table.column(name)[0].as_py()
            first = None if first == "" else first
            index = table.schema.get_field_index(name)
            constant = pa.array([first] * table.num_rows, table.schema.field(name).type)
            table = table.set_column(index, table.schema.field(name), constant)
            values[name] = serialize(first, type_from_arrow(constant.type))
        source = draw(
            st.sampled_from(SOURCES) if draw(st.integers(0, 2)) == 0 else st.sampled_from(SOURCES[:4])
        )
        tables.append(table)
        records.append({"partition_values": list(values.items()), "stats": source(table, partition_columns)})
    schema = pa.schema([("partition_values", pa.map_(pa.string(), pa.string())), ("stats", pa.string())])
    return tables, pa.Table.from_pylist(records, schema=schema), partition_columns


def assert_nothing_lost(found, predicate):
    tables, listing, partition_columns = found
    resolved = resolve_predicate(predicate, DELTA_SCHEMA)
    kept = files_may_match(listing, resolved, DELTA_SCHEMA, partition_columns)
    for table, keep in zip(tables, kept, strict=True):
        if not keep:
            assert not pc.any(matches(resolved, table)).as_py(), to_spark_sql(resolved)


def predicates_at_the_bounds(tables: list[pa.Table]) -> Iterator[Expression]:
    """Every comparison of every column with values that the files really hold, where mistakes show."""
    for name in sorted(VALUES):
        column = Column((name,))
        values = {repr(v): v for table in tables for v in table.column(name).to_pylist() if v is not None}
        yield IsNull(column)
        yield Not(IsNull(column))
        for value in values.values():
            if name == "f":
                continue
            for operator in ComparisonOperator:
                yield Comparison(operator, column, Literal(value))
            yield Not(In(column, (Literal(value),)))
            if name == "s":
                for prefix in {value[:1], value[:31], value[:32], value[:33], value}:
                    like = Like(column, prefix.replace("%", r"\%").replace("_", r"\_") + "%")
                    yield from (like, Not(like))


@given(files(), PREDICATES)
@settings(max_examples=100)
def test_pruned_files_hold_no_match(found, predicate):
    assert_nothing_lost(found, predicate)


@given(files())
@settings(max_examples=6)
def test_pruned_files_hold_no_match_at_the_bounds(found):
    for predicate in predicates_at_the_bounds(found[0]):
        assert_nothing_lost(found, predicate)
