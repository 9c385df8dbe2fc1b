from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import InvalidTableError, MissingDataFileError, SchemaError
from delta_core.expressions.parse import parse_predicate
from delta_core.scan.record_batches import FilePart, FileReader, read_file
from delta_core.schema.arrow import from_arrow
from delta_core.storage.local import LocalLogStore


def read(tmp_path, table, schema, *, text=None, **options):
    pq_options = options.pop("pq", {})
    pq.write_table(table, tmp_path / "f.parquet", **pq_options)
    delta = from_arrow(schema)
    predicate = None if text is None else parse_predicate(text, delta)
    return list(read_file(LocalLogStore(tmp_path), "f.parquet", schema=delta, predicate=predicate, **options))


def rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def test_older_file_is_widened_filled_and_reordered(tmp_path):
    old = pa.table(
        {
            "B": pa.array([1, 2], pa.int16()),
            "st": pa.array([{"x": 1}, None], pa.struct([("x", pa.int8())])),
            "gone": ["q", "r"],
            "c": pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)),
            "l": [[1], None],
        }
    )
    schema = pa.schema(
        [
            ("a", pa.string()),
            ("b", pa.int64()),
            ("c", pa.decimal128(12, 3)),
            ("st", pa.struct([("x", pa.int64()), ("new", pa.string())])),
            ("l", pa.list_(pa.int64())),
            ("v", pa.null()),
        ]
    )
    (batch,) = read(tmp_path, old, schema)
    assert batch.schema.names == schema.names
    assert batch.schema.field("st").type == schema.field("st").type
    assert batch.to_pylist() == [
        {"a": None, "b": 1, "c": Decimal("1.500"), "st": {"x": 1, "new": None}, "l": [1], "v": None},
        {"a": None, "b": 2, "c": None, "st": None, "l": None, "v": None},
    ]


def test_timestamps_of_every_writer(tmp_path):
    stamp = dt.datetime(2020, 1, 1, 1, 2, 3, 456789)
    before = dt.datetime(1960, 1, 1, 0, 0, 0, 1)
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us"))])
    table = pa.table({"t": [stamp, before], "n": [stamp, before]}, schema=schema)
    expected = [{"t": s.replace(tzinfo=dt.UTC), "n": s} for s in (stamp, before)]
    assert rows(read(tmp_path, table, schema)) == expected
    assert rows(read(tmp_path, table, schema, pq={"use_deprecated_int96_timestamps": True})) == expected
    nanos = table.cast(pa.schema([("t", pa.timestamp("ns", "UTC")), ("n", pa.timestamp("ns"))]))
    assert rows(read(tmp_path, nanos, schema)) == expected
    sub = pa.table(
        {"t": pa.array([-1, 1], pa.timestamp("ns", "UTC")), "n": pa.array([-1, 1], pa.timestamp("ns"))}
    )
    assert [r["n"] for r in rows(read(tmp_path, sub, schema))] == [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(1970, 1, 1),
    ]


def test_projection_filter_and_partition_columns(tmp_path):
    schema = pa.schema([("p", pa.date32()), ("a", pa.int64()), ("b", pa.string())])
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    options = {"partition_values": {"P": "2020-01-01"}, "partition_columns": ["p"]}
    day = dt.date(2020, 1, 1)
    assert rows(read(tmp_path, table, schema, **options))[0] == {"p": day, "a": 1, "b": "x"}
    found = read(tmp_path, table, schema, text="a >= 2 and p = '2020-01-01'", columns=["B", "p"], **options)
    assert rows(found) == [{"b": "y", "p": day}, {"b": "z", "p": day}]
    assert read(tmp_path, table, schema, text="p = '2020-01-02'", **options) == []
    only = read(tmp_path, table, schema, columns=["p"], batch_rows=2, **options)
    assert [b.num_rows for b in only] == [2, 1]
    none = read(tmp_path, table, schema, columns=[], **options)
    assert [(b.num_rows, b.num_columns) for b in none] == [(3, 0)]
    with pytest.raises(SchemaError, match="nope"):
        read(tmp_path, table, schema, columns=["nope"])


def test_row_groups_are_skipped_and_batches_bounded(tmp_path):
    schema = pa.schema([("a", pa.int64()), ("x", pa.float64())])
    table = pa.table({"a": list(range(1000)), "x": [float(i) for i in range(1000)]})
    found = read(tmp_path, table, schema, text="a >= 950", batch_rows=30, pq={"row_group_size": 100})
    # Only the last of ten row groups is decoded: four batches of it, of which the first two are filtered.
    assert [b.num_rows for b in found] == [10, 30, 10]
    nan = pa.table({"a": list(range(4)), "x": [1.0, float("nan"), 2.0, 3.0]})
    kept = read(tmp_path, nan, schema, text="x > 100", pq={"row_group_size": 2})
    assert [r["a"] for r in rows(kept)] == [1]


def test_names_with_dots(tmp_path):
    schema = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    table = pa.table({"a.b": [100], "a": [{"b": 1}]})
    assert rows(read(tmp_path, table, schema, text="`a.b` > 50 and a.b < 2")) == [{"a.b": 100, "a": {"b": 1}}]
    assert rows(read(tmp_path, table, schema, columns=["a.b"])) == [{"a.b": 100}]


def test_missing_damaged_and_wrong_files(tmp_path):
    schema = from_arrow(pa.schema([("a", pa.int64())]))
    store = LocalLogStore(tmp_path)
    with pytest.raises(MissingDataFileError, match=r"nope\.parquet"):
        list(read_file(store, "nope.parquet", schema=schema))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(InvalidTableError, match=r"bad\.parquet"):
        list(read_file(store, "bad.parquet", schema=schema))
    pq.write_table(pa.table({"a": ["text"]}), tmp_path / "text.parquet")
    with pytest.raises(InvalidTableError, match="Column a of the data file"):
        list(read_file(store, "text.parquet", schema=schema))


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_the_parts_of_a_file_have_each_row_once(tmp_path, parts):
    table = pa.table({"id": pa.array(range(100), pa.int64())})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=15)
    schema = from_arrow(table.schema)
    reader = FileReader(schema=schema, predicate=parse_predicate("id >= 20", schema))
    deleted = np.array([25, 99])
    found = []
    for index in range(parts):
        part = FilePart(index=index, count=parts)
        found.append(
            rows(
                reader.read(
                    LocalLogStore(tmp_path), "f.parquet", {}, deleted=lambda num_rows: deleted, part=part
                )
            )
        )
    assert [row["id"] for part in found for row in part] == [i for i in range(20, 99) if i != 25]
    assert sum(bool(part) for part in found) == min(parts, 6)
